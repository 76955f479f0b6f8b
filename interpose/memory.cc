// Stands before libc's memory, or that of an allocator that the program has in its place: each call that takes memory,
// or gives it back, is a record (format/memory.h).
//
// realloc() frees an address that another thread may get before it returns. So what it frees is recorded before the
// call, and what it returns behind it.
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>

#include "arch/cpu.h"
#include "format/system.h"
#include "interpose/memory_records.h"
#include "interpose/next.h"

namespace {

using namespace karst::format;
using namespace karst::interpose;

constinit RecordKind g_of_malloc = record_kind("malloc", kAllocated);
constinit RecordKind g_of_calloc = record_kind("calloc", kAllocated);
constinit RecordKind g_of_aligned = record_kind("aligned_alloc", kAllocated);
constinit RecordKind g_of_realloc = record_kind("realloc", kResized);
constinit RecordKind g_of_free = record_kind("free", kFreed);
constinit RecordKind g_of_old = record_kind("realloc frees", kFreed);
constinit RecordKind g_of_mmap = record_kind("mmap", kMapped);
constinit RecordKind g_of_munmap = record_kind("munmap", kUnmapped);
constinit RecordKind g_of_mremap = record_kind("mremap", kRemapped);

#define KARST_NEXT_FUNCTIONS(X) \
  X(malloc, nullptr)            \
  X(calloc, nullptr)            \
  X(realloc, nullptr)           \
  X(free, nullptr)              \
  X(memalign, nullptr)          \
  X(aligned_alloc, nullptr)     \
  X(posix_memalign, nullptr)    \
  X(valloc, nullptr)            \
  X(pvalloc, nullptr)           \
  X(mmap, nullptr)              \
  X(munmap, nullptr)

void find_next();
KARST_NEXT_FUNCTIONS(KARST_NEXT)
using Remap = void* (*)(void*, size_t, size_t, int, ...);
constinit Remap g_mremap = nullptr;

__attribute__((noinline, cold)) void find_next() {
  KARST_NEXT_FUNCTIONS(KARST_FIND_NEXT)
  karst::interpose::find_function(g_mremap, "mremap", nullptr);
}

char g_sampled_bytes[21];

/// Called at the first allocation after libc has begun, as that is recorded like all others.
__attribute__((noinline, cold)) void read_options() {
  const char* const how = system_how(getenv(kSystemVariable), "memory");
  for (size_t i = 0; how != nullptr && how[i] >= '0' && how[i] <= '9' && i + 1 < sizeof g_sampled_bytes; ++i)
    g_sampled_bytes[i] = how[i];
  const uint64_t mean = strtoull(g_sampled_bytes, nullptr, 10);
  if (mean >= 2) {
    void* const memory =
        g_mmap(nullptr, AddressSet::kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) {
      g_sampling.addresses.use(memory);
      g_sampling.mean = mean;
    }
  }
  g_sampling.all = g_sampling.mean == 0;
  g_sampling.known = true;
}

__attribute__((constructor)) void begin() {
  find_next();
  if (!g_sampling.known) read_options();
  find_operators(reinterpret_cast<const void*>(g_malloc));
  void (*enter)(karst_name*, const char*, uint32_t);
  KARST_FIND_(enter, name_with_values);
  if (enter == nullptr) return;
  for (RecordKind* kind : {&g_of_malloc, &g_of_calloc, &g_of_aligned, &g_of_realloc, &g_of_free, &g_of_old, &g_of_mmap,
                           &g_of_munmap, &g_of_mremap})
    enter(&kind->name, kind->values, kind->values_size);
  static constinit RecordKind s_sampled = record_kind(g_sampled_bytes, kSampled);
  if (g_sampling.mean != 0) enter(&s_sampled.name, s_sampled.values, s_sampled.values_size);
}

}  // namespace

bool karst::interpose::is_drawn(size_t size) {
  if (!g_sampling.known) {
    if (environ == nullptr) return false;  // the loader's
    read_options();
  }
  if (g_sampling.all) return true;
  Countdown& countdown = t_memory.countdown;
  if (countdown.random == 0) {
    countdown.random = (number(&countdown) ^ karst::arch::time_stamp()) | 1;
    countdown.next_random();
    countdown.draw(g_sampling.mean);
    if (size < countdown.left) {
      countdown.left -= size;
      return false;
    }
  }
  countdown.draw(g_sampling.mean);
  return true;
}

KARST_EXPORT void* malloc(size_t size) { return allocated(g_of_malloc, g_malloc(size), size); }

KARST_EXPORT void* calloc(size_t count, size_t size) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, size, &all)) all = SIZE_MAX;
  return allocated(g_of_calloc, g_calloc(count, size), all);
}

// libc's reallocarray() calls it, too.
KARST_EXPORT void* realloc(void* old, size_t size) {
  const bool old_known = old != nullptr && is_freed(old);
  if (old_known) record(g_of_old, number(old));
  void* const address = g_realloc(old, size);
  t_memory.taken = address;
  const bool stays = address == nullptr && size != 0 && old_known;
  const bool wanted = is_wanted(size);
  if (stays) remember(old);
  if ((wanted || stays) && remember(address))
    record(g_of_realloc, number(old_known ? old : nullptr), size, number(address));
  return address;
}

KARST_EXPORT void free(void* address) {
  if (address != nullptr && is_freed(address) && address != t_memory.deleting) record(g_of_free, number(address));
  g_free(address);
}

KARST_EXPORT void* memalign(size_t alignment, size_t size) {
  return allocated(g_of_aligned, g_memalign(alignment, size), size);
}

KARST_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  return allocated(g_of_aligned, g_aligned_alloc(alignment, size), size);
}

KARST_EXPORT int posix_memalign(void** to, size_t alignment, size_t size) {
  const int failed = g_posix_memalign(to, alignment, size);
  allocated(g_of_aligned, failed == 0 ? *to : nullptr, size);
  return failed;
}

KARST_EXPORT void* valloc(size_t size) { return allocated(g_of_aligned, g_valloc(size), size); }

KARST_EXPORT void* pvalloc(size_t size) { return allocated(g_of_aligned, g_pvalloc(size), size); }

// Mappings are few, so all of them are recorded.

KARST_EXPORT void* mmap(void* wish, size_t length, int protection, int flags, int file, off_t offset) {
  void* const address = g_mmap(wish, length, protection, flags, file, offset);
  record(g_of_mmap, length, address == MAP_FAILED ? 0 : number(address));
  return address;
}

extern "C" __attribute__((visibility("default"), alias("mmap"))) void* mmap64(void*, size_t, int, int, int,
                                                                              off_t) __THROW;

KARST_EXPORT int munmap(void* address, size_t length) {
  record(g_of_munmap, number(address), length);
  return g_munmap(address, length);
}

KARST_EXPORT void* mremap(void* old, size_t old_length, size_t length, int flags, ...) {
  void* wish = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list rest;
    va_start(rest, flags);
    wish = va_arg(rest, void*);
    va_end(rest);
  }
  void* const address = g_mremap(old, old_length, length, flags, wish);
  record(g_of_mremap, number(old), old_length, length, address == MAP_FAILED ? 0 : number(address));
  return address;
}
