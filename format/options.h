// What the runtime and `karst run` must agree on when they read options. Free of libc.
#pragma once
#include <cstdint>

namespace karst::format {

inline constexpr std::uint64_t kLeastMemory = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kMostMemory = std::uint64_t{64} << 30;

/// "64K", "256M", "1G" or plain bytes, from kLeastMemory to kMostMemory. False for anything else; then `bytes` is as it
/// was.
constexpr bool parse_memory_size(const char* s, std::uint64_t& bytes) {
  std::uint64_t n = 0;
  const char* digits = s;
  for (; *s >= '0' && *s <= '9'; ++s) {
    if (n > kMostMemory) return false;
    n = n * 10 + static_cast<std::uint64_t>(*s - '0');
  }
  if (s == digits) return false;
  unsigned shift = 0;
  switch (*s | 0x20) {
    case 'k':
      shift = 10;
      break;
    case 'm':
      shift = 20;
      break;
    case 'g':
      shift = 30;
      break;
    default:
      break;
  }
  if (shift != 0) ++s;
  if (*s != '\0' || n > kMostMemory >> shift || n << shift < kLeastMemory) return false;
  bytes = n << shift;
  return true;
}

static_assert([] {
  std::uint64_t bytes = 0;
  return parse_memory_size("256M", bytes) && bytes == std::uint64_t{256} << 20 && !parse_memory_size("63K", bytes);
}());

}  // namespace karst::format
