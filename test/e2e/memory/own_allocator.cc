// An allocator that a program has in itself:
//   (nothing)   blocks of powers of two, whose functions call each other
//   NEXT        hands on to whoever comes next in the loader's order
//   LOOPS       the first one, whose free() goes back to its first instruction
//   HOOKED      the first one, whose malloc() goes on through a pointer
//   CROSSING    the first one, whose valloc() begins at the end of a page
#include <dlfcn.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default"), noinline))

#ifdef NEXT
#define BEHIND(name) static auto const behind = reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))
EXPORT void* malloc(size_t size) noexcept {
  BEHIND(malloc);
  return behind(size);
}
EXPORT void free(void* address) noexcept {
  BEHIND(free);
  behind(address);
}
EXPORT void* calloc(size_t count, size_t size) noexcept {
  BEHIND(calloc);
  return behind(count, size);
}
EXPORT void* realloc(void* old, size_t size) noexcept {
  BEHIND(realloc);
  return behind(old, size);
}
#else
EXPORT void* malloc(size_t size) noexcept;
EXPORT void free(void* address) noexcept;

namespace {

constexpr int kClasses = 48;
constexpr size_t kChunk = size_t{1} << 20;
struct Head {
  void* block;  // where it begins
  uint32_t kind;
  uint32_t unused;
  size_t size;
  size_t more;
};
static_assert(sizeof(Head) == 32);
void* g_free[kClasses];
char* g_next;
size_t g_left;
bool g_lock;

struct Locked {
  Locked() {
    while (__atomic_exchange_n(&g_lock, true, __ATOMIC_ACQUIRE)) sched_yield();
  }
  ~Locked() { __atomic_store_n(&g_lock, false, __ATOMIC_RELEASE); }
};

Head* head_of(void* address) { return static_cast<Head*>(address) - 1; }

void* take(size_t alignment, size_t size) {
  if (size > PTRDIFF_MAX - 2 * kChunk - alignment) return errno = ENOMEM, nullptr;
  const size_t all = size + sizeof(Head) + alignment;
  uint32_t kind = 6;
  while ((size_t{1} << kind) < all) ++kind;
  const size_t bytes = size_t{1} << kind;
  char* block = nullptr;
  {
    const Locked lock;
    if (g_free[kind] != nullptr) {
      block = static_cast<char*>(g_free[kind]);
      memcpy(&g_free[kind], block, sizeof(void*));
    } else {
      if (g_left < bytes) {
        g_left = bytes > kChunk ? bytes : kChunk;
        void* const got =
            mmap(nullptr, g_left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (got == MAP_FAILED) return g_left = 0, errno = ENOMEM, nullptr;
        g_next = static_cast<char*>(got);
      }
      block = g_next;
      g_next += bytes;
      g_left -= bytes;
    }
  }
  const uintptr_t at = (reinterpret_cast<uintptr_t>(block) + sizeof(Head) + alignment - 1) / alignment * alignment;
  auto* const address = block + (at - reinterpret_cast<uintptr_t>(block));
  *head_of(address) = {block, kind, 0, size, 0};
  return address;
}

[[maybe_unused]] void give(void* address) {
  if (address == nullptr) return;
  const Head head = *head_of(address);
  const Locked lock;
  memcpy(head.block, &g_free[head.kind], sizeof(void*));
  g_free[head.kind] = head.block;
}

}  // namespace

#ifdef HOOKED
void* (*volatile g_take)(size_t size) noexcept = [](size_t size) noexcept { return take(16, size); };
EXPORT void* malloc(size_t size) noexcept { return g_take(size); }
#else
EXPORT void* malloc(size_t size) noexcept { return take(16, size); }
#endif
#ifdef LOOPS
__asm__(
    ".globl free\n.type free, @function\nfree:\n.cfi_startproc\ntest %rdi, %rdi\nje 1f\nxor %edi, %edi\njmp free\n"
    "1: ret\n.cfi_endproc\n.size free, . - free");
#else
EXPORT void free(void* address) noexcept { give(address); }
#endif
EXPORT void* calloc(size_t count, size_t size) noexcept {
  size_t all = 0;
  if (__builtin_mul_overflow(count, size, &all)) return errno = ENOMEM, nullptr;
  void* const address = malloc(all);
  if (address != nullptr) memset(address, 0, all);
  return address;
}
EXPORT void* realloc(void* old, size_t size) noexcept {
  if (old != nullptr && size <= head_of(old)->size && size > head_of(old)->size / 2) {
    head_of(old)->size = size;
    return old;
  }
  void* const address = malloc(size);
  if (address == nullptr || old == nullptr) return address;
  const size_t before = head_of(old)->size;
  memcpy(address, old, before < size ? before : size);
  free(old);
  return address;
}
EXPORT void* memalign(size_t alignment, size_t size) noexcept { return take(alignment < 16 ? 16 : alignment, size); }
EXPORT void* aligned_alloc(size_t alignment, size_t size) noexcept { return memalign(alignment, size); }
EXPORT int posix_memalign(void** to, size_t alignment, size_t size) noexcept {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  const int before = errno;
  void* const address = memalign(alignment, size);
  errno = before;
  if (address == nullptr) return ENOMEM;
  *to = address;
  return 0;
}
#ifdef CROSSING
__asm__(
    ".section .text.crossing, \"ax\"\n.balign 4096\n.skip 4093, 0x90\n.globl valloc\n.type valloc, @function\nvalloc:\n"
    ".cfi_startproc\nmov %rdi, %rsi\nmov $4096, %edi\njmp memalign\n.cfi_endproc\n.size valloc, . - valloc\n.text");
#else
EXPORT void* valloc(size_t size) noexcept { return memalign(4096, size); }
#endif
EXPORT void* pvalloc(size_t size) noexcept { return memalign(4096, (size + 4095) / 4096 * 4096); }
EXPORT size_t malloc_usable_size(void* address) noexcept { return address != nullptr ? head_of(address)->size : 0; }
#endif
