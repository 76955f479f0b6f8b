// Text for people: names without control characters, times and amounts in human units.
#pragma once
#include <cstddef>
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

/// Columns that `text`, which is printable() UTF-8, takes on a terminal.
std::size_t text_width(std::string_view text);
/// The begin of `text` that fits `width` columns, "..." in its end where something is missing.
std::string fit_text(std::string_view text, std::size_t width);

/// The same of its end, "..." in front.
std::string fit_tail(std::string_view text, std::size_t width);

/// "850 ns", "12.35 us", "1.234 ms", "61.20 s": four digits, rounded to nearest.
std::string duration_text(std::uint64_t ns);
/// "12.3%".
std::string percent_text(std::uint64_t part, std::uint64_t whole);
/// "12,345,678".
std::string count_text(std::uint64_t count);
/// "1 call", "2,000 calls".
std::string plural(std::uint64_t count, const char* what, const char* ending = "s");
/// "512 bytes", "1.5 MiB".
std::string size_text(std::uint64_t bytes);
/// UTC, with milliseconds: "2026-11-21 03:00:00.123 UTC".
std::string time_text(std::uint64_t realtime_ns);

/// "10us", "1.5ms", "2s", "300ns" (a unit is required) to nanoseconds.
Result<std::uint64_t> parse_duration(std::string_view text);

}  // namespace karst::cli
