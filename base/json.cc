// SPDX-License-Identifier: MIT
#include "base/json.h"

#include "base/utf8.h"

namespace karst {

namespace {

void append_escaped(std::string& out, std::uint32_t code) {
  constexpr char kHex[] = "0123456789abcdef";
  if (code > 0xffff) {  // two surrogates
    append_escaped(out, 0xd7c0 + (code >> 10));
    code = 0xdc00 | (code & 0x3ff);
  }
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[code >> shift & 15];
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    std::size_t length = 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      append_escaped(out, byte);
    } else if (byte < 0x80) {
      out += c;
    } else if ((length = utf8_character(text)) != 0) {
      const std::uint32_t code = length == 1 ? 0 : utf8_code_point(text.substr(0, length));
      if (is_misleading(code))
        append_escaped(out, code);
      else
        out += text.substr(0, length);
    } else {
      out += kReplacementCharacter;
      length = 1;
    }
    text.remove_prefix(length);
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace karst
