// Text from a trace is untrusted bytes; JSON and protobuf want UTF-8.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace karst::exporting {

/// Bytes of the UTF-8 character that `text` starts with (1 to 4); 0 when there is no valid one (RFC 3629: no
/// overlong forms, no surrogates).
std::size_t utf8_character(std::string_view text);

/// Appends `text` as a JSON string with its quotes (RFC 8259); invalid bytes become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

/// `text` with each invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace karst::exporting
