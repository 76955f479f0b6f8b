// What all who read an arena need: loads of words that others change, and whether a table lies within.
#pragma once
#include <cstdint>

namespace karst::collect {

template <typename T>
T load(const T& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

/// `count` things of `each` bytes from `offset` on lie in `size` bytes, in their right places for 8-byte words.
inline bool fits(std::uint64_t offset, std::uint64_t count, std::uint64_t each, std::uint64_t size) {
  return offset <= size && offset % 8 == 0 && count <= (size - offset) / each;
}

}  // namespace karst::collect
