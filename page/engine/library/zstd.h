// SPDX-License-Identifier: MIT
// The page decompresses.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

inline constexpr unsigned long long ZSTD_CONTENTSIZE_UNKNOWN = ~0ULL;
inline constexpr unsigned long long ZSTD_CONTENTSIZE_ERROR = ~0ULL - 1;

extern "C" __attribute__((import_module("karst"), import_name("decompress"))) std::uint32_t karst_decompress(
    void* to, std::size_t room, const void* from, std::size_t size);

/// As the frame's header has it (RFC 8878, 3.1.1.1).
inline unsigned long long ZSTD_getFrameContentSize(const void* from, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(from);
  constexpr std::uint32_t kMagic = 0xfd2fb528;
  std::uint32_t magic = 0;
  if (size < 6) return ZSTD_CONTENTSIZE_ERROR;
  std::memcpy(&magic, bytes, sizeof magic);
  if (magic != kMagic) return ZSTD_CONTENTSIZE_ERROR;
  const unsigned descriptor = bytes[4];
  const bool single = (descriptor & 0x20U) != 0;
  constexpr std::size_t kDictionary[] = {0, 1, 2, 4};
  const std::size_t at = 5 + (single ? 0 : 1) + kDictionary[descriptor & 3U];
  const unsigned kind = descriptor >> 6U;
  if (kind == 0 && !single) return ZSTD_CONTENTSIZE_UNKNOWN;
  const std::size_t length = std::size_t{1} << kind;
  if (at + length > size) return ZSTD_CONTENTSIZE_ERROR;
  unsigned long long content = 0;
  std::memcpy(&content, bytes + at, length);
  return content + (kind == 1 ? 256 : 0);
}

inline constexpr std::size_t kZstdFailed = ~std::size_t{0};
inline std::size_t ZSTD_decompress(void* to, std::size_t room, const void* from, std::size_t size) {
  const std::uint32_t made = karst_decompress(to, room, from, size);
  return made > room ? kZstdFailed : made;
}
/// The page keeps nothing from one frame to the next.
struct ZSTD_DCtx {};
inline ZSTD_DCtx* ZSTD_createDCtx() {
  static ZSTD_DCtx context;
  return &context;
}
inline std::size_t ZSTD_freeDCtx(ZSTD_DCtx*) { return 0; }
inline std::size_t ZSTD_decompressDCtx(ZSTD_DCtx*, void* to, std::size_t room, const void* from, std::size_t size) {
  return ZSTD_decompress(to, room, from, size);
}
inline unsigned ZSTD_isError(std::size_t code) { return code == kZstdFailed ? 1 : 0; }
inline const char* ZSTD_getErrorName(std::size_t) { return "its data is damaged"; }
