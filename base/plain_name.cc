// SPDX-License-Identifier: MIT
#include "base/plain_name.h"

#include <algorithm>

namespace karst {
namespace {

constexpr std::string_view kOperator = "operator";

bool is_word(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Length of `operator()`, `operator<<` and their like at the begin of `text`; 0: there is none. Their brackets close
/// nothing.
std::size_t operator_size(std::string_view text) {
  if (!text.starts_with(kOperator)) return 0;
  const std::string_view symbol = text.substr(kOperator.size());
  if (symbol.starts_with("()") || symbol.starts_with("[]")) return kOperator.size() + 2;
  const std::size_t end = std::min(symbol.find_first_not_of("-+*/%^&|~!=<>,"), symbol.size());
  return end == 0 ? 0 : kOperator.size() + end;
}

/// Splits `a::b<x::y>::c(int)` into `a`, `b<x::y>`, `c(int)`: only at `::` outside of all brackets.
std::vector<std::string_view> components(std::string_view name) {
  std::vector<std::string_view> parts;
  std::size_t from = 0;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (const std::size_t symbol = i == 0 || !is_word(name[i - 1]) ? operator_size(name.substr(i)) : 0; symbol != 0) {
      i += symbol - 1;
      continue;
    }
    const char c = name[i];
    if (std::string_view("([{<").find(c) != std::string_view::npos) {
      ++depth;
    } else if (std::string_view(")]}>").find(c) != std::string_view::npos) {
      depth = std::max(0, depth - 1);
    } else if (depth == 0 && name.substr(i).starts_with("::")) {
      parts.push_back(name.substr(from, i - from));
      from = i + 2;
      ++i;
    }
  }
  parts.push_back(name.substr(from));
  return parts;
}

/// A component without its parameters and template arguments; empty for an anonymous namespace.
std::string_view bare(std::string_view part) {
  if (part.starts_with("(anonymous")) return {};
  if (part.starts_with("{lambda")) return "{lambda}";
  if (part.starts_with("{") || part.starts_with("'")) return part;
  if (const std::size_t symbol = operator_size(part); symbol != 0) return part.substr(0, symbol);
  if (part.starts_with("operator ") || part.starts_with("operator\"")) return part.substr(0, part.find('('));
  std::size_t end = part.find_first_of("(<[{", 1);
  // Python's `Shop.serve.<locals>.<lambda>`: no template's arguments follow a dot.
  while (end != part.npos && part[end] == '<' && part[end - 1] == '.') end = part.find_first_of("(<[{", end + 1);
  part = part.substr(0, end);
  while (part.ends_with(' ')) part.remove_suffix(1);
  return part;
}

}  // namespace

std::vector<std::string_view> plain_parts(std::string_view name) {
  // " [clone .cold]" and the like.
  if (const std::size_t clone = name.find(" [clone "); clone != std::string_view::npos) name = name.substr(0, clone);
  std::vector<std::string_view> parts;
  for (const std::string_view part : components(name)) {
    if (const std::string_view of = bare(part); !of.empty()) parts.push_back(of);
  }
  if (parts.empty()) parts.push_back(name);
  return parts;
}

CoroutinePart coroutine_part(std::string_view name) {
  if (name.ends_with(" [clone .actor]") || name.ends_with(" [clone .resume]")) return CoroutinePart::kResumes;
  if (name.ends_with(" [clone .destroy]") || name.ends_with(" [clone .cleanup]")) return CoroutinePart::kEnds;
  return CoroutinePart::kNone;
}

std::string join_parts(const std::vector<std::string_view>& parts, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < parts.size(); ++i) {
    if (i != from) text += "::";
    text += parts[i];
  }
  return text;
}

std::string plain_name(std::string_view name) { return join_parts(plain_parts(name), 0); }

}  // namespace karst
