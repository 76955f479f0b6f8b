// SPDX-License-Identifier: MIT
// Which lines a function takes in its source, by its braces.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "answers/relation.h"

namespace karst::engine {

/// What api/source answers: a row of source_texts().
struct SourceText {
  const std::string& path;
  std::uint32_t line;        ///< from 1; 0: not known
  std::uint32_t end_line;    ///< of the function's closing brace; `line`: not found
  std::uint32_t first_line;  ///< of `text`
  std::string_view text;
};
const answers::Relation& source_texts();

/// The line (from 1) of the brace that closes the body of the function defined at `line` of a C or C++ text; `line`
/// when none is found. Comments, strings, raw strings and character literals are passed over; the preprocessor is not
/// run, so that branches of #if with unbalanced braces mislead it.
std::uint32_t function_end_line(std::string_view text, std::uint32_t line);

/// The offset where a line begins; the text's size when it has fewer.
std::size_t line_offset(std::string_view text, std::uint32_t line);

}  // namespace karst::engine
