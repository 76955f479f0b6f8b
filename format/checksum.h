// CRC-32C (Castagnoli; polynomial 0x1EDC6F41 reflected, initial and final complement), the checksum
// of headers and payloads. Uses the CPU's crc32 instruction where there is one. Free of libc,
// so that the runtime may use it too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

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

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) inline std::uint32_t crc32c_sse42(std::uint32_t crc, const unsigned char* p,
                                                                    std::size_t n) {
  std::uint64_t c = crc;
  for (; n >= 8; n -= 8, p += 8) {
    std::uint64_t v;
    std::memcpy(&v, p, 8);
    c = __builtin_ia32_crc32di(c, v);
  }
  auto c32 = static_cast<std::uint32_t>(c);
  while (n-- != 0) c32 = __builtin_ia32_crc32qi(c32, *p++);
  return c32;
}
#endif

}  // namespace detail

/// CRC-32C of `size` bytes; pass the former result as `crc` to continue over several pieces.
inline std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc = 0) {
  const auto* p = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~detail::crc32c_sse42(~crc, p, size);
#endif
  return ~detail::crc32c_portable(~crc, p, size);
}

}  // namespace karst::format
