// Text for people: names without control characters, times and amounts in human units.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace karst::cli {

/// `text` from a trace, safe to print on a terminal and on one line: control characters, invalid UTF-8 and characters
/// that reorder text become \n, \t, \xNN or \u{NNNN}.
std::string printable(std::string_view text);
/// The same, but newlines stay.
std::string printable_lines(std::string_view text);

/// "850 ns", "12.35 us", "1.234 ms", "61.20 s": four digits, rounded to nearest.
std::string duration_text(std::uint64_t ns);
/// "12,345,678".
std::string count_text(std::uint64_t count);
/// "512 bytes", "1.5 MiB".
std::string size_text(std::uint64_t bytes);
/// UTC, with milliseconds: "2026-11-21 03:00:00.123 UTC".
std::string time_text(std::uint64_t realtime_ns);

/// "10us", "1.5ms", "2s", "300ns" (a unit is required) to nanoseconds.
Result<std::uint64_t> parse_duration(std::string_view text);

}  // namespace karst::cli
