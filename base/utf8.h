// SPDX-License-Identifier: MIT
// Text from a trace is untrusted bytes; JSON and protobuf want UTF-8. All of it may be called from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace karst {

/// What stands for a byte that is no UTF-8: U+FFFD.
inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

/// Bytes of the UTF-8 character that `text` starts with (1 to 4); 0 when there is no valid one (RFC 3629: no
/// overlong forms, no surrogates).
std::size_t utf8_character(std::string_view text);

/// Of a valid character of two or more bytes.
std::uint32_t utf8_code_point(std::string_view character);

/// Whether a character of two or more bytes does harm where text is shown: C1 controls, which terminals obey, line
/// separators, what changes the direction of text, and what is not seen at all.
bool is_misleading(std::uint32_t code_point);

/// `text` with each invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace karst
