// SPDX-License-Identifier: MIT
// A hash of two numbers, for tables of their own: a call path's node by parent and function, an edge by its two ends.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::columns {

inline std::size_t pair_hash(std::uint32_t first, std::uint32_t second) {
  std::uint64_t key = std::uint64_t{first} << 32U | second;
  key *= 0x9e3779b97f4a7c15ULL;  // Fibonacci hashing: the upper bits are well mixed
  return static_cast<std::size_t>(key >> 29U);
}

}  // namespace karst::columns
