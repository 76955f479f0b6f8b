// SPDX-License-Identifier: MIT
// Memory for what may become large: from malloc, or, from some MiB on, from the kernel itself and with large pages, as
// small ones take a fault for every 4 KiB that is touched for the first time.
#pragma once
#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace karst::pages {

inline constexpr std::size_t kLargePage = std::size_t{2} << 20;
/// From here on memory is the kernel's. The last large page of it may be used in part.
inline constexpr std::size_t kLarge = 2 * kLargePage;

#ifdef MADV_HUGEPAGE

inline bool is_large(std::size_t bytes) { return bytes >= kLarge && bytes <= SIZE_MAX - kLargePage; }
inline std::size_t whole(std::size_t bytes) { return (bytes + kLargePage - 1) / kLargePage * kLargePage; }

/// At a large page's beginning. Null: there is no memory.
inline void* map_large(std::size_t bytes) {
  const std::size_t size = whole(bytes);
  if (size > SIZE_MAX - kLargePage) return nullptr;
  void* const mapped =
      mmap(nullptr, size + kLargePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = (kLargePage - reinterpret_cast<std::uintptr_t>(begin) % kLargePage) % kLargePage;
  if (before != 0) munmap(begin, before);
  munmap(begin + before + size, kLargePage - before);
  madvise(begin + before, size, MADV_HUGEPAGE);  // where there are none, small ones do
  return begin + before;
}

/// Null: there is no memory. `bytes` must not be 0.
inline void* take(std::size_t bytes) { return is_large(bytes) ? map_large(bytes) : std::malloc(bytes); }
inline void give_back(void* memory, std::size_t bytes) {
  if (memory != nullptr && is_large(bytes))
    munmap(memory, whole(bytes));
  else
    std::free(memory);
}
/// As realloc(); neither size is 0 unless `memory` is null. Null: there is no memory, and the old one stays.
inline void* resize(void* memory, std::size_t had, std::size_t bytes) {
  if (memory == nullptr) return take(bytes);
  if (!is_large(had) && !is_large(bytes)) return std::realloc(memory, bytes);
  if (is_large(had) && is_large(bytes)) {
    // Moved by the kernel, if the place behind it is taken; to a place where large pages stay large.
    if (whole(had) == whole(bytes)) return memory;
    if (void* const same = mremap(memory, whole(had), whole(bytes), 0); same != MAP_FAILED) return same;
    void* const place = map_large(bytes);
    if (place == nullptr) return nullptr;
    void* const moved = mremap(memory, whole(had), whole(bytes), MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (moved != MAP_FAILED) return moved;
    munmap(place, whole(bytes));
    return nullptr;
  }
  void* const fresh = take(bytes);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, memory, std::min(had, bytes));
  give_back(memory, had);
  return fresh;
}

#else  // WebAssembly has no pages

inline void* take(std::size_t bytes) { return std::malloc(bytes); }
inline void give_back(void* memory, std::size_t) { std::free(memory); }
inline void* resize(void* memory, std::size_t, std::size_t bytes) { return std::realloc(memory, bytes); }

#endif

/// For a std::vector.
template <typename T>
struct Allocator {
  using value_type = T;

  Allocator() = default;
  template <typename U>
  Allocator(const Allocator<U>&) {}
  T* allocate(std::size_t n) {
    void* const memory = n > SIZE_MAX / sizeof(T) ? nullptr : take(std::max<std::size_t>(1, n * sizeof(T)));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t n) { give_back(memory, std::max<std::size_t>(1, n * sizeof(T))); }
  friend bool operator==(const Allocator&, const Allocator&) { return true; }
};

}  // namespace karst::pages
