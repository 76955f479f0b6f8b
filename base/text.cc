// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "base/utf8.h"

namespace karst {
namespace {

char* write_integer(char* to, std::uint64_t value) {
  if (value >= 1000) return std::to_chars(to, to + kMostDurationText, value).ptr;
  // Few digits, as in most durations: twice as fast.
  const auto small = static_cast<std::uint32_t>(value);
  if (small >= 100) *to++ = static_cast<char>('0' + small / 100);
  if (small >= 10) *to++ = static_cast<char>('0' + small / 10 % 10);
  *to++ = static_cast<char>('0' + small % 10);
  return to;
}

// `ns` in units of kUnit ns, rounded to so many decimals.
template <std::uint64_t kUnit, std::uint32_t kDecimals>
char* write_rounded(char* to, std::uint64_t ns) {
  constexpr std::uint64_t kOne = kDecimals == 3 ? 1000 : kDecimals == 2 ? 100 : 10;
  constexpr std::uint64_t kStep = kUnit / kOne;
  const std::uint64_t rounded = ns / kStep + (ns % kStep >= kStep - kStep / 2 ? 1 : 0);
  to = write_integer(to, rounded / kOne);
  *to++ = '.';
  std::uint64_t rest = rounded % kOne;
  for (std::uint32_t at = kDecimals; at != 0; --at, rest /= 10) to[at - 1] = static_cast<char>('0' + rest % 10);
  return to + kDecimals;
}

template <std::uint64_t kUnit>
char* write_four_digits(char* to, std::uint64_t ns) {
  if (ns < 10 * kUnit - kUnit / 2000) return write_rounded<kUnit, 3>(to, ns);
  return ns < 100 * kUnit - kUnit / 200 ? write_rounded<kUnit, 2>(to, ns) : write_rounded<kUnit, 1>(to, ns);
}

std::string make_printable(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    std::size_t length = utf8_character(text);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", byte);
      length = 1;
    } else if (length > 1) {
      const std::uint32_t code = utf8_code_point(text.substr(0, length));
      if (is_misleading(code)) {
        out += fmt::format("\\u{{{:04x}}}", code);
      } else {
        out += text.substr(0, length);
      }
    } else if (byte == '\n') {
      out += lines ? "\n" : "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text.front();
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return make_printable(text, false); }
std::string printable_lines(std::string_view text) { return make_printable(text, true); }

std::string percent_text(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  return percent_text(whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole));
}

// In integers, and divided by constants: the text of a float takes several times as long.
char* write_duration(char* to, std::uint64_t ns) {
  const auto end_with = [&](std::string_view unit) {
    std::memcpy(to, unit.data(), unit.size());
    return to + unit.size();
  };
  if (ns < 1000) {
    to = write_integer(to, ns);
    return end_with(" ns");
  }
  // What would print as 1000.0 of one unit has the next.
  if (ns < 999'950) {
    to = write_four_digits<1000>(to, ns);
    return end_with(" us");
  }
  if (ns < 999'950'000) {
    to = write_four_digits<1'000'000>(to, ns);
    return end_with(" ms");
  }
  to = write_four_digits<1'000'000'000>(to, ns);
  return end_with(" s");
}

std::string duration_text(std::uint64_t ns) {
  char text[kMostDurationText];
  return std::string(text, write_duration(text, ns));
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

std::string plural(std::uint64_t count, const char* what, const char* ending) {
  return count_text(count) + " " + what + (count == 1 ? "" : ending);
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* next : {"MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

}  // namespace karst
