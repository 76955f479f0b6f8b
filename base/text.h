// SPDX-License-Identifier: MIT
// Text for people: names without control characters, times and amounts in human units. All of it may be called from any
// thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace karst {

/// `text` from a trace, safe to print on a terminal and on one line: control characters, invalid UTF-8 and characters
/// that reorder text or are not seen become \n, \t, \xNN or \u{NNNN}.
std::string printable(std::string_view text);
/// The same, but newlines stay.
std::string printable_lines(std::string_view text);

/// "850 ns", "12.35 us", "1.234 ms", "61.20 s": four digits, rounded to nearest.
std::string duration_text(std::uint64_t ns);
/// The same to `to`, which has room for kMostDurationText; returns its end. For tables of millions of rows.
char* write_duration(char* to, std::uint64_t ns);
inline constexpr std::size_t kMostDurationText = 16;
/// "12.3%".
std::string percent_text(double share);
std::string percent_text(std::uint64_t part, std::uint64_t whole);
/// "12,345,678".
std::string count_text(std::uint64_t count);
/// "1 call", "2,000 calls".
std::string plural(std::uint64_t count, const char* what, const char* ending = "s");
/// "512 bytes", "1.5 MiB".
std::string size_text(std::uint64_t bytes);

}  // namespace karst
