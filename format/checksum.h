// SPDX-License-Identifier: MIT
// CRC-32C (Castagnoli; polynomial 0x1EDC6F41 reflected, initial and final complement), the checksum
// of headers and payloads. Uses the CPU's crc32 instruction where there is one. Free of libc,
// so that the runtime may use it too.
#pragma once
#include <cstddef>
#include <cstdint>

#include "arch/cpu.h"

namespace karst::format {

namespace detail {

struct Crc32cTable {
  std::uint32_t entry[256];
  constexpr Crc32cTable() : entry{} {
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82F63B78U : 0U);
      entry[i] = c;
    }
  }
};
inline constexpr Crc32cTable kCrc32cTable;

inline std::uint32_t crc32c_portable(std::uint32_t crc, const unsigned char* p, std::size_t n) {
  while (n-- != 0) crc = kCrc32cTable.entry[(crc ^ *p++) & 0xff] ^ (crc >> 8);
  return crc;
}

/// By the processor's instruction.
inline std::uint32_t crc32c_quick(std::uint32_t crc, const unsigned char* p, std::size_t n) {
  std::uint64_t c = crc;
  for (; n >= 8; n -= 8, p += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, p, sizeof word);
    c = arch::crc32c_of_word(c, word);
  }
  auto c32 = static_cast<std::uint32_t>(c);
  while (n-- != 0) c32 = arch::crc32c_of_byte(c32, *p++);
  return c32;
}

}  // namespace detail

/// CRC-32C of `size` bytes; pass the former result as `crc` to continue over several pieces.
inline std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc = 0) {
  const auto* p = static_cast<const unsigned char*>(data);
  static const bool has_instruction = arch::has_crc32c();
  if (has_instruction) return ~detail::crc32c_quick(~crc, p, size);
  return ~detail::crc32c_portable(~crc, p, size);
}

}  // namespace karst::format
