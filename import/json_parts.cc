// SPDX-License-Identifier: MIT
#include "import/json_parts.h"

#include <cstdint>

namespace karst::importing {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool ends_scalar(char c) { return is_space(c) || c == ',' || c == ']' || c == '}' || c == ':'; }

}  // namespace

char JsonParts::peek() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonParts::take(char c) {
  if (peek() != c || at_ == text_.size()) return false;
  ++at_;
  return true;
}

// From behind its first quote to behind its last one.
bool JsonParts::skip_string() {
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\\') {
      ++at_;
    } else if (text_[at_] == '"') {
      ++at_;
      return true;
    }
  }
  at_ = text_.size();
  return false;
}

std::optional<std::string_view> JsonParts::value() {
  const char first = peek();
  const std::size_t begin = at_;
  if (begin == text_.size()) return std::nullopt;
  if (first == '"') {
    ++at_;
    return skip_string() ? std::optional(text_.substr(begin, at_ - begin)) : std::nullopt;
  }
  if (first != '{' && first != '[') {
    ++at_;  // whatever it is
    while (at_ < text_.size() && !ends_scalar(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  std::uint64_t depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"' && !skip_string()) return std::nullopt;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return text_.substr(begin, at_ - begin);
  }
  return std::nullopt;
}

}  // namespace karst::importing
