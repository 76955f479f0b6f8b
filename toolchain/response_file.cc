// SPDX-License-Identifier: MIT
#include "toolchain/response_file.h"

#include <cctype>
#include <cstddef>
#include <fstream>
#include <string_view>
#include <utility>

namespace karst::toolchain {
namespace {

constexpr std::size_t kLargest = std::size_t{64} << 20;

// As GNU tools and clang take it apart: white space separates, quotes and backslashes do what they do in a shell.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
      inside = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (inside) words.push_back(std::exchange(word, {}));
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

}  // namespace

std::optional<std::vector<std::string>> read_response_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text;
  char part[4096];
  while (file.read(part, sizeof part) || file.gcount() > 0) {
    text.append(part, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kLargest) return std::nullopt;
  }
  return words_of(text);
}

}  // namespace karst::toolchain
