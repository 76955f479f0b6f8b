// SPDX-License-Identifier: MIT
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

namespace karst::interpose {

constinit RecordKind g_of_malloc = record_kind("malloc", format::kAllocated);
constinit RecordKind g_of_calloc = record_kind("calloc", format::kAllocated);
constinit RecordKind g_of_aligned = record_kind("aligned_alloc", format::kAllocated);
constinit RecordKind g_of_realloc = record_kind("realloc", format::kResized);
constinit RecordKind g_of_free = record_kind("free", format::kFreed);
constinit RecordKind g_of_old = record_kind("realloc frees", format::kFreed);

}  // namespace karst::interpose

namespace {

using namespace karst::format;
using namespace karst::interpose;

constinit RecordKind g_of_mmap = record_kind("mmap", kMapped);
constinit RecordKind g_of_munmap = record_kind("munmap", kUnmapped);
constinit RecordKind g_of_mremap = record_kind("mremap", kRemapped);
constinit RecordKind g_of_brk = record_kind("brk", kBreakMoved);
constinit RecordKind g_of_sbrk = record_kind("sbrk", kBreakMoved);

/// dlsym() of a glibc before 2.34 takes memory itself, once in a thread: by calloc(), which is just being looked for.
alignas(16) char g_first_bytes[256];
bool is_of_first(const void* address) { return number(address) - number(g_first_bytes) < sizeof g_first_bytes; }

void* find_and_calloc(size_t count, size_t size);
constinit decltype(pointer_to(&::calloc)) g_calloc = find_and_calloc;
KARST_STAND_IN_(calloc, nullptr, &g_calloc)

void* find_and_calloc(size_t count, size_t size) {
  static size_t s_used;
  static bool s_finding;
  if (s_finding) {
    char* const bytes = g_first_bytes + s_used;
    if (size == 0 || count > (sizeof g_first_bytes - s_used) / size) return nullptr;
    s_used += (count * size + 15) & ~size_t{15};
    return bytes;
  }
  s_finding = true;
  find_all();
  return g_calloc(count, size);
}

KARST_BEFORE(malloc)
KARST_BEFORE(realloc)
KARST_BEFORE(free)
KARST_BEFORE(memalign)
KARST_BEFORE(aligned_alloc)
KARST_BEFORE(posix_memalign)
KARST_BEFORE(valloc)
KARST_BEFORE(pvalloc)
KARST_BEFORE(mmap)
KARST_ALSO(mmap64)
KARST_BEFORE(munmap)
using Remap = void* (*)(void*, size_t, size_t, int, void*);
KARST_BEFORE_AS(mremap, Remap)
KARST_BEFORE(brk)
KARST_BEFORE(sbrk)

char g_sampled_bytes[21];

/// HOW as `karst run` has said it in a variable, or karst in our switch.
uint64_t wanted_mean() {
  if (karst_interpose_switch.came_late != 0) return karst_interpose_switch.sample;
  const char* const how = system_how(getenv(kSystemVariable), "memory");
  return how != nullptr ? strtoull(how, nullptr, 10) : 0;
}

void write_sampled_bytes(uint64_t mean) {
  char digits[20];
  size_t count = 0;
  do digits[count++] = static_cast<char>('0' + mean % 10);
  while ((mean /= 10) != 0);
  for (char* to = g_sampled_bytes; count != 0;) *to++ = digits[--count];
}

/// So that readers know what each record stands for.
void say_sampling() {
  static constinit RecordKind s_sampled = record_kind(g_sampled_bytes, kSampled);
  if (g_sampling.mean != 0) enter_kinds({&s_sampled});
}

/// Called at the first allocation after libc has begun, as that is recorded like all others.
__attribute__((noinline, cold)) void read_options() {
  static bool s_begun;  // another thread, or what a handler has interrupted, is at it
  if (__atomic_exchange_n(&s_begun, true, __ATOMIC_ACQUIRE)) return;
  const uint64_t mean = wanted_mean();
  if (mean >= 2) {
    void* const memory =
        g_mmap(nullptr, AddressSet::kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) {
      g_sampling.addresses.use(memory);
      g_sampling.mean = mean;
      write_sampled_bytes(mean);
    }
  }
  g_sampling.all = g_sampling.mean == 0;
  karst_interpose_switch.sample = g_sampling.mean;
  __atomic_store_n(&karst_interpose_switch.sample_set, 1U, __ATOMIC_RELAXED);
  if (karst_interpose_switch.came_late != 0) say_sampling();
  __atomic_store_n(&g_sampling.known, true, __ATOMIC_RELEASE);
}

KARST_NAMES(of_memory, &g_of_malloc.name, &g_of_calloc.name, &g_of_aligned.name, &g_of_realloc.name, &g_of_free.name,
            &g_of_old.name, &g_of_mmap.name, &g_of_munmap.name, &g_of_mremap.name, &g_of_brk.name, &g_of_sbrk.name)

__attribute__((constructor)) void begin() {
  const bool is_late = begin_standing();
  if (!is_late && !g_sampling.known) read_options();
  if (is_late || !stand_before_the_programs_own()) find_operators(reinterpret_cast<const void*>(g_malloc), is_late);
  if (is_late) stand_inside();
  enter_kinds({&g_of_malloc, &g_of_calloc, &g_of_aligned, &g_of_realloc, &g_of_free, &g_of_old, &g_of_mmap,
               &g_of_munmap, &g_of_mremap, &g_of_brk, &g_of_sbrk});
  if (is_late)
    begin_redirecting();
  else
    say_sampling();
}

}  // namespace

bool karst::interpose::is_drawn(size_t size) {
  if (!g_sampling.known) {
    if (environ == nullptr) return false;  // the loader's
    read_options();
    if (!g_sampling.known) return false;
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

KARST_EXPORT void* malloc(size_t size) {
  if (is_off()) return g_malloc(size);
  return allocated(g_of_malloc, g_malloc(size), size);
}

KARST_EXPORT void* calloc(size_t count, size_t size) {
  if (is_off()) return g_calloc(count, size);
  size_t all = 0;
  if (__builtin_mul_overflow(count, size, &all)) all = SIZE_MAX;
  return allocated(g_of_calloc, g_calloc(count, size), all);
}

// libc's reallocarray() calls it, too.
KARST_EXPORT void* realloc(void* old, size_t size) {
  if (is_off()) return g_realloc(old, size);
  const bool old_known = is_given_back(old);
  void* const address = g_realloc(old, size);
  return reallocated(old, old_known, address, size);
}

KARST_EXPORT void free(void* address) {
  if (is_of_first(address)) return;
  if (is_off()) return g_free(address);
  if (address != nullptr && is_freed(address) && address != t_memory.deleting) record(g_of_free, number(address));
  g_free(address);
}

KARST_EXPORT void* memalign(size_t alignment, size_t size) {
  if (is_off()) return g_memalign(alignment, size);
  return allocated(g_of_aligned, g_memalign(alignment, size), size);
}

KARST_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  if (is_off()) return g_aligned_alloc(alignment, size);
  return allocated(g_of_aligned, g_aligned_alloc(alignment, size), size);
}

KARST_EXPORT int posix_memalign(void** to, size_t alignment, size_t size) {
  if (is_off()) return g_posix_memalign(to, alignment, size);
  const int failed = g_posix_memalign(to, alignment, size);
  allocated(g_of_aligned, failed == 0 ? *to : nullptr, size);
  return failed;
}

KARST_EXPORT void* valloc(size_t size) {
  if (is_off()) return g_valloc(size);
  return allocated(g_of_aligned, g_valloc(size), size);
}

KARST_EXPORT void* pvalloc(size_t size) {
  if (is_off()) return g_pvalloc(size);
  return allocated(g_of_aligned, g_pvalloc(size), size);
}

// Mappings are few, so all of them are recorded.

KARST_EXPORT void* mmap(void* wish, size_t length, int protection, int flags, int file, off_t offset) {
  if (is_off()) return g_mmap(wish, length, protection, flags, file, offset);
  void* const address = g_mmap(wish, length, protection, flags, file, offset);
  record(g_of_mmap, length, address == MAP_FAILED ? 0 : number(address));
  return address;
}

extern "C" __attribute__((visibility("default"), alias("mmap"))) void* mmap64(void*, size_t, int, int, int,
                                                                              off_t) __THROW;

KARST_EXPORT int munmap(void* address, size_t length) {
  if (is_off()) return g_munmap(address, length);
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
  if (is_off()) return address;
  record(g_of_mremap, number(old), old_length, length, address == MAP_FAILED ? 0 : number(address));
  return address;
}

// libc's malloc() moves the break by a call within libc, which nobody sees: what it makes of that is recorded above.

namespace {
/// Where the system has the break now: libc's brk() also returns 0 where it was not lowered after all.
void record_break(RecordKind& kind, const void* from) {
  const void* const to = g_sbrk(0);
  const void* const unknown = reinterpret_cast<void*>(-1);  // NOLINT(performance-no-int-to-ptr)
  if (to != from && from != unknown && to != unknown) record(kind, number(from), number(to));
}
}  // namespace

KARST_EXPORT int brk(void* to) {
  if (is_off()) return g_brk(to);
  const void* const from = g_sbrk(0);
  const int failed = g_brk(to);
  if (failed == 0) record_break(g_of_brk, from);
  return failed;
}

KARST_EXPORT void* sbrk(intptr_t increment) {
  void* const from = g_sbrk(increment);
  if (!is_off() && increment != 0) record_break(g_of_sbrk, from);
  return from;
}
