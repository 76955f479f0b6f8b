// SPDX-License-Identifier: MIT
// Bytes and C strings without libc: libc's memcpy and memset use vector registers, which hooks must not touch,
// and may not be callable yet when the first constructor runs.
#pragma once
#include <cstddef>
#include <cstdint>

#include "arch/cpu.h"
#include "arch/shared_word.h"

namespace karst::runtime {

inline void copy(void* to, const void* from, std::size_t n) { arch::copy_bytes(to, from, n); }

/// 8 bytes at any address: one instruction, where copy() would be dear.
inline std::uint64_t word_at(const void* from) {
  std::uint64_t word;
  __builtin_memcpy(&word, from, sizeof word);
  return word;
}
inline void put_word(void* to, std::uint64_t word) { __builtin_memcpy(to, &word, sizeof word); }

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

using arch::exchange_if;
using arch::load;
using arch::store;

constexpr std::uint64_t align_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }
constexpr std::uint64_t align_down(std::uint64_t n, std::uint64_t to) { return n / to * to; }

}  // namespace karst::runtime
