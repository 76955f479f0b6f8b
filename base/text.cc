#include "base/text.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/utf8.h"

namespace karst {
namespace {

// C1 controls, line separators, and what changes the direction of text.
bool misleading(std::uint32_t code) {
  return code < 0xa0 || code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
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
      if (misleading(code)) {
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

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.1f}%", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string duration_text(std::uint64_t ns) {
  if (ns < 1000) return fmt::format(FMT_COMPILE("{} ns"), ns);
  const char* unit = "us";
  double value = static_cast<double>(ns) / 1e3;
  // 999.95 would print as 1000.0 with its four digits.
  if (value >= 999.95) {
    value /= 1e3;
    unit = "ms";
    if (value >= 999.95) {
      value /= 1e3;
      unit = "s";
    }
  }
  if (value < 9.9995) return fmt::format(FMT_COMPILE("{:.3f} {}"), value, unit);
  if (value < 99.995) return fmt::format(FMT_COMPILE("{:.2f} {}"), value, unit);
  return fmt::format(FMT_COMPILE("{:.1f} {}"), value, unit);
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
