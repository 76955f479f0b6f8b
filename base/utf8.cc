// SPDX-License-Identifier: MIT
#include "base/utf8.h"

namespace karst {

std::size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  // The second byte's range keeps out overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

std::uint32_t utf8_code_point(std::string_view character) {
  std::uint32_t code = static_cast<unsigned char>(character[0]) & (0x7fU >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  return code;
}

bool is_misleading(std::uint32_t code) {
  return code < 0xa0 || code == 0x061c || code == 0x180e || code == 0x200b || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
         (code >= 0xfff9 && code <= 0xfffb) || (code >= 0xe0000 && code <= 0xe007f);
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_character(text);
    out += length != 0 ? text.substr(0, length) : kReplacementCharacter;
    text.remove_prefix(length != 0 ? length : 1);
  }
  return out;
}

}  // namespace karst
