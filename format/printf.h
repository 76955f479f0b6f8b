// SPDX-License-Identifier: MIT
// printf's formats, as far as both the runtime and readers look at them: where conversions are, and which arguments
// they take. The runtime asks which addresses are texts and how far they may be read; readers format.
#pragma once
#include <cstdint>

namespace karst::format {

/// `%[ARGUMENT$][FLAGS][WIDTH][.PRECISION][LENGTH]CONVERSION`. Arguments are counted from 0; -1: none.
struct PrintfConversion {
  std::uint32_t begin = 0, end = 0;              ///< from % to behind the last letter
  std::uint32_t flags_begin = 0, flags_end = 0;  ///< -+ #0'
  int argument = -1;                             ///< none: %% and %m
  int width = -1, width_argument = -1;
  int precision = -1, precision_argument = -1;  ///< of a lone point: 0
  char length = 0;                              ///< h l L j z t, H for hh and q for ll
  char conversion = 0;                          ///< 0: the format ends before it
};

inline constexpr int kMostPrintfNumber = 1'000'000;  ///< larger ones are this

namespace detail {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr int take_number(const char* text, std::uint32_t size, std::uint32_t& at) {
  int number = 0;
  for (; at < size && is_digit(text[at]); ++at)
    if (number < kMostPrintfNumber) number = number * 10 + (text[at] - '0');
  return number < kMostPrintfNumber ? number : kMostPrintfNumber;
}

/// A width or precision: digits, `*` or `*ARGUMENT$`.
constexpr void take_size(const char* text, std::uint32_t size, std::uint32_t& at, int& next, int& number,
                         int& argument) {
  if (at < size && is_digit(text[at])) number = take_number(text, size, at);
  if (at == size || text[at] != '*') return;
  std::uint32_t behind = ++at;
  const int numbered = take_number(text, size, behind);
  if (behind > at && behind < size && text[behind] == '$') {
    argument = numbered - 1;
    at = behind + 1;
  } else {
    argument = next++;
  }
}

}  // namespace detail

/// The conversion at or behind `at`, which goes behind it. `next`: the argument whose turn it is, 0 at first. False:
/// there is none.
constexpr bool next_conversion(const char* text, std::uint32_t size, std::uint32_t& at, int& next,
                               PrintfConversion& found) {
  while (at < size && text[at] != '%') ++at;
  if (at >= size) return false;
  found = PrintfConversion();
  found.begin = at++;
  std::uint32_t behind = at;
  const int numbered = detail::take_number(text, size, behind);
  const bool has_number = behind > at && behind < size && text[behind] == '$';
  if (has_number) at = behind + 1;
  found.flags_begin = at;
  const auto is_flag = [](char c) { return c == '-' || c == '+' || c == ' ' || c == '#' || c == '0' || c == '\''; };
  while (at < size && is_flag(text[at])) ++at;
  found.flags_end = at;
  detail::take_size(text, size, at, next, found.width, found.width_argument);
  if (at < size && text[at] == '.') {
    ++at;
    found.precision = 0;
    detail::take_size(text, size, at, next, found.precision, found.precision_argument);
  }
  const auto is_length = [](char c) { return c == 'h' || c == 'l' || c == 'L' || c == 'j' || c == 'z' || c == 't'; };
  if (at < size && is_length(text[at])) {
    found.length = text[at++];
    if (at < size && text[at] == found.length && (found.length == 'h' || found.length == 'l'))
      found.length = text[at++] == 'h' ? 'H' : 'q';
  }
  if (at < size) found.conversion = text[at++];
  found.end = at;
  if (found.conversion != '%' && found.conversion != 'm' && found.conversion != 0)
    found.argument = has_number ? numbered - 1 : next++;
  return true;
}

}  // namespace karst::format
