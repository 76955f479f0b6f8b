// SPDX-License-Identifier: MIT
// A log's text (format/log.h): its format, and the arguments' bytes behind it. Both are the program's and may be
// anything: what cannot be formatted is said in its place, and sizes are bounded.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace karst::analysis {

/// `values` are the format's style and its arguments' types; `bytes` the note's. Conversions are those of printf, or of
/// std::format, in the C locale. What has no argument is `%!d(missing)`, or `{!:x(missing)}`; what does not fit the
/// argument's type is `%!d(text)`. A text that the runtime has cut ends with `...`. Without bytes, or without values:
/// the format as it is.
std::string log_text(std::string_view format, std::string_view values, std::string_view bytes);

/// 0: none. Above 4: the program's own.
std::uint32_t log_level(std::string_view bytes);
/// "debug", "info", "warning", "error"; "level 7" for one of the program's own; empty for 0.
std::string log_level_name(std::uint32_t level);

}  // namespace karst::analysis
