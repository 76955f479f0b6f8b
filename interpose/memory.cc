// Stands before libc's memory, or that of an allocator that the program has in its place: each call that takes memory,
// or gives it back, is a record (format/memory.h).
//
// realloc() frees an address that another thread may get before it returns. So what it frees is recorded before the
// call, and what it returns behind it.
#include "format/memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <initializer_list>

#include "format/system.h"
#include "interpose/next.h"
#include "interpose/sampling.h"
#include "karst/karst.h"

namespace {

using namespace karst::format;
using karst::interpose::AddressSet;
using karst::interpose::Countdown;

/// The name of a kind of record, and what describes its numbers.
struct Kind {
  karst_name name;
  const char* values;
  uint32_t values_size;
};
template <size_t kSize>
constexpr Kind kind_of(const char* name, const char (&values)[kSize]) {
  return {{name, nullptr, 0, 0}, values, kSize - 1};
}

constinit Kind g_of_malloc = kind_of("malloc", kAllocated);
constinit Kind g_of_calloc = kind_of("calloc", kAllocated);
constinit Kind g_of_aligned = kind_of("aligned_alloc", kAllocated);
constinit Kind g_of_realloc = kind_of("realloc", kResized);
constinit Kind g_of_free = kind_of("free", kFreed);
constinit Kind g_of_old = kind_of("realloc frees", kFreed);
constinit Kind g_of_mmap = kind_of("mmap", kMapped);
constinit Kind g_of_munmap = kind_of("munmap", kUnmapped);
constinit Kind g_of_mremap = kind_of("mremap", kRemapped);

template <typename... Numbers>
void record(Kind& kind, Numbers... given) {
  const uint64_t numbers[] = {static_cast<uint64_t>(given)...};
  KARST_NOTE_(void, record, (karst_name*, const char*, uint32_t, const uint64_t*, uint32_t),
              (&kind.name, kind.values, kind.values_size, numbers, sizeof...(given)))
}

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

#define KARST_NEXT_FUNCTIONS(X) \
  X(malloc, nullptr)            \
  X(calloc, nullptr)            \
  X(realloc, nullptr)           \
  X(reallocarray, nullptr)      \
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

/// Bytes between two allocations that are recorded, at an average; 0: all are. Set before the program begins.
constinit uint64_t g_mean = 0;
constinit AddressSet g_sampled;
__attribute__((tls_model("initial-exec"))) thread_local constinit Countdown t_countdown;

__attribute__((constructor)) void begin() {
  find_next();
  void (*enter)(karst_name*, const char*, uint32_t);
  KARST_FIND_(enter, name_with_values);
  if (enter == nullptr) return;
  const char* const how = system_how(getenv(kSystemVariable), "memory");
  static char s_bytes[21];
  for (size_t i = 0; how != nullptr && how[i] >= '0' && how[i] <= '9' && i + 1 < sizeof s_bytes; ++i)
    s_bytes[i] = how[i];
  const uint64_t mean = strtoull(s_bytes, nullptr, 10);
  for (Kind* kind : {&g_of_malloc, &g_of_calloc, &g_of_aligned, &g_of_realloc, &g_of_free, &g_of_old, &g_of_mmap,
                     &g_of_munmap, &g_of_mremap})
    enter(&kind->name, kind->values, kind->values_size);
  if (mean < 2) return;
  void* const memory =
      g_mmap(nullptr, AddressSet::kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;  // then all are recorded
  g_sampled.use(memory);
  static Kind s_sampled = kind_of(nullptr, kSampled);
  s_sampled.name.name = s_bytes;
  enter(&s_sampled.name, s_sampled.values, s_sampled.values_size);
  g_mean = mean;
}

__attribute__((noinline)) bool is_drawn(size_t size) {
  if (g_mean == 0) return true;
  Countdown& countdown = t_countdown;
  const bool begun = countdown.random != 0;
  if (!begun) {
    countdown.random = (number(&countdown) ^ __builtin_ia32_rdtsc()) | 1;
    countdown.next_random();
    countdown.draw(g_mean);
    if (size < countdown.left) {
      countdown.left -= size;
      return false;
    }
  }
  countdown.draw(g_mean);
  return true;
}

/// Whether an allocation of this size is recorded: the next `size` bytes of the thread have been taken.
__attribute__((always_inline)) inline bool is_wanted(size_t size) {
  const uint64_t left = t_countdown.left;
  if (__builtin_expect(size < left, 1)) {
    t_countdown.left = left - size;
    return false;
  }
  return is_drawn(size);
}

/// Whether it is recorded that this address is freed.
__attribute__((always_inline)) inline bool is_freed(const void* address) {
  return g_mean == 0 || g_sampled.take(number(address));
}

/// True if the address will be known when it is freed: where it would not, its allocation is not recorded either.
bool remember(const void* address) { return g_mean == 0 || address == nullptr || g_sampled.insert(number(address)); }

__attribute__((noinline)) void* allocated(Kind& kind, void* address, size_t size) {
  if (remember(address)) record(kind, size, number(address));
  return address;
}

/// What a realloc() of any kind returns.
template <typename Resize>
void* resized(void* old, size_t size, Resize resize) {
  const bool old_known = old != nullptr && is_freed(old);
  if (old_known) record(g_of_old, number(old));
  void* const address = resize();
  const bool stays = address == nullptr && size != 0;
  if (is_wanted(size) || (stays && old_known)) {
    if (stays && old_known) remember(old);
    if (remember(address)) record(g_of_realloc, number(old_known ? old : nullptr), size, number(address));
  }
  return address;
}

}  // namespace

KARST_EXPORT void* malloc(size_t size) {
  void* const address = g_malloc(size);
  return is_wanted(size) ? allocated(g_of_malloc, address, size) : address;
}

KARST_EXPORT void* calloc(size_t count, size_t size) {
  void* const address = g_calloc(count, size);
  size_t all = 0;
  if (__builtin_mul_overflow(count, size, &all)) all = SIZE_MAX;
  return is_wanted(all) ? allocated(g_of_calloc, address, all) : address;
}

KARST_EXPORT void* realloc(void* old, size_t size) {
  return resized(old, size, [=] { return g_realloc(old, size); });
}

KARST_EXPORT void* reallocarray(void* old, size_t count, size_t size) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, size, &all)) all = SIZE_MAX;
  return resized(old, all, [=] { return g_reallocarray(old, count, size); });
}

KARST_EXPORT void free(void* address) {
  if (address != nullptr && is_freed(address)) record(g_of_free, number(address));
  g_free(address);
}

KARST_EXPORT void* memalign(size_t alignment, size_t size) {
  void* const address = g_memalign(alignment, size);
  return is_wanted(size) ? allocated(g_of_aligned, address, size) : address;
}

KARST_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  void* const address = g_aligned_alloc(alignment, size);
  return is_wanted(size) ? allocated(g_of_aligned, address, size) : address;
}

KARST_EXPORT int posix_memalign(void** to, size_t alignment, size_t size) {
  const int failed = g_posix_memalign(to, alignment, size);
  if (is_wanted(size)) allocated(g_of_aligned, failed == 0 ? *to : nullptr, size);
  return failed;
}

KARST_EXPORT void* valloc(size_t size) {
  void* const address = g_valloc(size);
  return is_wanted(size) ? allocated(g_of_aligned, address, size) : address;
}

KARST_EXPORT void* pvalloc(size_t size) {
  void* const address = g_pvalloc(size);
  return is_wanted(size) ? allocated(g_of_aligned, address, size) : address;
}

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
