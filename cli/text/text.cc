// SPDX-License-Identifier: MIT
#include "cli/text/text.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

#include "base/utf8.h"

namespace karst::cli {
namespace {

/// 2 of Chinese, Japanese and Korean characters and of pictures, 0 of marks that join the character before them.
std::size_t columns_of(std::uint32_t code) {
  if ((code >= 0x300 && code <= 0x36f) || (code >= 0x200b && code <= 0x200d) || (code >= 0xfe00 && code <= 0xfe0f))
    return 0;
  const bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                    (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                    (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
                    (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1faff) ||
                    (code >= 0x20000 && code <= 0x3fffd);
  return wide ? 2 : 1;
}

/// Bytes and columns of the character that `text`, which is not empty, begins with.
struct Character {
  std::size_t bytes;
  std::size_t columns;
};
Character first_character(std::string_view text) {
  const std::size_t bytes = utf8_character(text);
  if (bytes <= 1) return {1, 1};
  return {bytes, columns_of(utf8_code_point(text.substr(0, bytes)))};
}

}  // namespace

std::size_t text_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character c = first_character(text);
    columns += c.columns;
    text.remove_prefix(c.bytes);
  }
  return columns;
}

std::string fit_text(std::string_view text, std::size_t width) {
  if (text_width(text) <= width) return std::string(text);
  constexpr std::string_view kDots = "...";
  const std::size_t room = width > kDots.size() ? width - kDots.size() : 0;
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size();) {
    const Character c = first_character(text.substr(end));
    columns += c.columns;
    if (columns > room) break;
    end += c.bytes;
  }
  return std::string(text.substr(0, end)) + std::string(kDots.substr(0, width));
}

std::string fit_tail(std::string_view text, std::size_t width) {
  if (text_width(text) <= width) return std::string(text);
  const std::size_t dots = width > 3 ? 3 : 0;
  std::size_t columns = text_width(text);
  while (columns > width - dots) {
    const Character c = first_character(text);
    columns -= c.columns;
    text.remove_prefix(c.bytes);
  }
  return std::string(dots, '.') + std::string(text);
}

std::string time_text(std::uint64_t realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "unknown";
  char text[64];
  if (std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0) return "unknown";
  return fmt::format("{}.{:03} UTC", text, realtime_ns / 1'000'000 % 1000);
}

Result<std::uint64_t> parse_duration(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const double scale = unit == "ns"   ? 1
                       : unit == "us" ? 1e3
                       : unit == "ms" ? 1e6
                       : unit == "s"  ? 1e9
                       : unit == "m"  ? 60e9
                       : unit == "h"  ? 3600e9
                                      : 0;
  if (error != std::errc() || scale == 0 || !std::isfinite(value) || value < 0 || value * scale > 9e18) {
    return Error{fmt::format("'{}' is not a time; write it like 10us, 1.5ms, 2s or 5m", text)};
  }
  return static_cast<std::uint64_t>(std::llround(value * scale));
}

}  // namespace karst::cli
