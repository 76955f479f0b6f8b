// SPDX-License-Identifier: MIT
// Bytes as people and file names have them. May be called from any thread.
#pragma once
#include <string>
#include <string_view>

namespace karst {

/// Two lower-case digits a byte.
inline std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

}  // namespace karst
