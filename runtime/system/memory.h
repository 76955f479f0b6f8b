// Bytes and C strings without libc: libc's memcpy and memset use vector registers, which hooks must not touch,
// and may not be callable yet when the first constructor runs.
#pragma once
#include <cstddef>
#include <cstdint>

#include "arch/cpu.h"

namespace karst::runtime {

inline void copy(void* to, const void* from, std::size_t n) { arch::copy_bytes(to, from, n); }

/// `n` is a multiple of 8.
inline void zero(void* p, std::size_t n) { arch::zero_words(p, n); }

inline std::size_t length(const char* s) {
  std::size_t n = 0;
  while (s[n] != '\0') ++n;
  return n;
}

inline bool equal(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

inline bool starts_with(const char* s, const char* prefix) {
  while (*prefix != '\0')
    if (*s++ != *prefix++) return false;
  return true;
}

template <typename T>
T load(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <typename T>
void store(T& word, T value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}
template <typename T>
bool exchange_if(T& word, T expected, T desired) {
  return __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

constexpr std::uint64_t align_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }
constexpr std::uint64_t align_down(std::uint64_t n, std::uint64_t to) { return n / to * to; }

}  // namespace karst::runtime
