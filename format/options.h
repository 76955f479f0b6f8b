// SPDX-License-Identifier: MIT
// What the runtime and `karst run` must agree on when they read options. Free of libc.
#pragma once
#include <cstdint>

namespace karst::format {

inline constexpr std::uint32_t kMostNumber = 1'000'000;

/// Digits alone, up to kMostNumber. False for anything else; then `number` is as it was.
constexpr bool parse_number(const char* begin, const char* end, std::uint32_t& number) {
  std::uint32_t n = 0;
  for (const char* p = begin; p != end; ++p) {
    if (*p < '0' || *p > '9') return false;
    n = n * 10 + static_cast<std::uint32_t>(*p - '0');
    if (n > kMostNumber) return false;
  }
  if (begin == end) return false;
  number = n;
  return true;
}

inline constexpr std::uint64_t kLeastMemory = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kMostMemory = std::uint64_t{64} << 30;

/// "64K", "256M", "1G" or plain bytes, from `least` to kMostMemory. False for anything else; then `bytes` is as it was.
constexpr bool parse_size(const char* s, std::uint64_t least, std::uint64_t& bytes) {
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
  if (*s != '\0' || n > kMostMemory >> shift || n << shift < least) return false;
  bytes = n << shift;
  return true;
}
constexpr bool parse_memory_size(const char* s, std::uint64_t& bytes) { return parse_size(s, kLeastMemory, bytes); }

static_assert([] {
  std::uint64_t bytes = 0;
  return parse_memory_size("256M", bytes) && bytes == std::uint64_t{256} << 20 && !parse_memory_size("63K", bytes);
}());

/// "5%", "0.5%": a share of time, from 0.1% to 100%, in millionths. False for anything else; then `ppm` is as it was.
constexpr bool parse_budget(const char* s, std::uint32_t& ppm) {
  std::uint32_t n = 0;
  std::uint32_t unit = 10'000;  // of the next digit behind the point
  const char* digits = s;
  for (; *s >= '0' && *s <= '9'; ++s) {
    if (n > 100) return false;
    n = n * 10 + static_cast<std::uint32_t>(*s - '0');
  }
  if (s == digits || n > 100) return false;
  n *= unit;
  if (*s == '.') {
    const char* fraction = ++s;
    for (; *s >= '0' && *s <= '9'; ++s) n += static_cast<std::uint32_t>(*s - '0') * (unit /= 10);
    if (s == fraction) return false;
  }
  if (*s != '%' || s[1] != '\0' || n < 1'000 || n > 1'000'000) return false;
  ppm = n;
  return true;
}

static_assert([] {
  std::uint32_t ppm = 0;
  return parse_budget("5%", ppm) && ppm == 50'000 && parse_budget("0.25%", ppm) && ppm == 2'500 &&
         !parse_budget("5", ppm) && !parse_budget("101%", ppm) && !parse_budget("0.05%", ppm);
}());

inline constexpr std::uint64_t kLongestMinDurationNs = 10'000'000'000;

/// "5us", "500ns", "2ms", "1s": nanoseconds, from 1ns to 10s. Reads up to the end of the text. False for anything else;
/// then `ns` is as it was.
constexpr bool parse_duration(const char* s, std::uint64_t& ns) {
  std::uint64_t n = 0;
  const char* digits = s;
  for (; *s >= '0' && *s <= '9'; ++s) {
    if (n > kLongestMinDurationNs) return false;
    n = n * 10 + static_cast<std::uint64_t>(*s - '0');
  }
  if (s == digits) return false;
  std::uint64_t unit = 1'000'000'000;
  if (*s != 's') {
    unit = *s == 'n' ? 1 : *s == 'u' ? 1'000 : *s == 'm' ? 1'000'000 : 0;
    if (*s != '\0') ++s;
  }
  if (*s != 's' || s[1] != '\0' || unit == 0 || n == 0 || n > kLongestMinDurationNs / unit) return false;
  ns = n * unit;
  return true;
}

inline constexpr std::uint64_t kShortestClockNs = 20;
inline constexpr std::uint64_t kLongestClockNs = 1'000'000;
inline constexpr std::uint64_t kUsualClockNs = 100;

/// What stamps events.
struct ClockChoice {
  std::uint64_t period_ns = 0;  ///< 0: the TSC; else how often a thread stores the time
  bool adapts = false;          ///< the period is the shortest: it may be longer where passing the time on takes long
};

/// "tsc", "thread", "thread:200ns": the last for a period from 20ns to 1ms that stays.
/// False for anything else; then `choice` is as it was.
constexpr bool parse_clock(const char* s, ClockChoice& choice) {
  const auto skip = [&s](const char* word) {
    const char* at = s;
    for (; *word != '\0'; ++word, ++at)
      if (*at != *word) return false;
    s = at;
    return true;
  };
  ClockChoice chosen;
  if (skip("thread")) {
    chosen = {kUsualClockNs, true};
    if (skip(":")) {
      std::uint64_t period = 0;
      if (!parse_duration(s, period) || period < kShortestClockNs || period > kLongestClockNs) return false;
      chosen = {period, false};
    } else if (*s != '\0') {
      return false;
    }
  } else if (!skip("tsc") || *s != '\0') {
    return false;
  }
  choice = chosen;
  return true;
}

static_assert([] {
  std::uint64_t ns = 0;
  return parse_duration("5us", ns) && ns == 5'000 && parse_duration("10000ms", ns) && ns == kLongestMinDurationNs &&
         !parse_duration("5", ns) && !parse_duration("0ns", ns) && parse_duration("5s", ns) && ns == 5'000'000'000 &&
         !parse_duration("11s", ns) && !parse_duration("1us ", ns) && !parse_duration("1u", ns) &&
         !parse_duration("1h", ns);
}());
static_assert([] {
  ClockChoice c;
  return parse_clock("tsc", c) && c.period_ns == 0 && parse_clock("thread", c) && c.period_ns == 100 && c.adapts &&
         parse_clock("thread:1us", c) && c.period_ns == 1'000 && !c.adapts && !parse_clock("thread:", c) &&
         !parse_clock("threads", c) && !parse_clock("thread:5ms", c) && !parse_clock("tsc:1us", c) &&
         c.period_ns == 1'000;
}());

/// "USR1", "SIGUSR2", or the number of a real-time signal that libc leaves to programs (34 to 64).
constexpr bool parse_signal(const char* s, int& number) {
  if (s[0] == 'S' && s[1] == 'I' && s[2] == 'G') s += 3;
  if (s[0] == 'U' && s[1] == 'S' && s[2] == 'R' && (s[3] == '1' || s[3] == '2') && s[4] == '\0') {
    number = s[3] == '1' ? 10 : 12;
    return true;
  }
  if (s[0] < '3' || s[0] > '6' || s[1] < '0' || s[1] > '9' || s[2] != '\0') return false;
  const int n = (s[0] - '0') * 10 + (s[1] - '0');
  if (n < 34 || n > 64) return false;
  number = n;
  return true;
}

}  // namespace karst::format
