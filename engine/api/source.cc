// SPDX-License-Identifier: MIT
#include "engine/api/source.h"

#include <cstddef>
#include <string>

namespace karst::engine {
namespace {

// Passes over a literal or a comment that starts at `at`; returns `at` when none does there.
std::size_t skip_token(std::string_view text, std::size_t at) {
  const auto find = [&](std::string_view what, std::size_t from) {
    const std::size_t found = text.find(what, from);
    return found == std::string_view::npos ? text.size() : found + what.size();
  };
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) {
    const std::size_t end = text.find('\n', at);
    return end == std::string_view::npos ? text.size() : end;
  }
  if (rest.starts_with("/*")) return find("*/", at + 2);
  if (rest.starts_with("R\"")) {
    const std::size_t open = text.find('(', at + 2);
    if (open == std::string_view::npos || open - at > 20) return at + 1;
    std::string end(")");
    end.append(text.substr(at + 2, open - at - 2));
    end += '"';
    return find(end, open + 1);
  }
  if (rest[0] != '"' && rest[0] != '\'') return at;
  // 1'000'000
  if (rest[0] == '\'' && at != 0 && rest.size() > 1 && ((text[at - 1] >= '0' && text[at - 1] <= '9'))) return at + 1;
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == rest[0]) {
      return i + 1;
    }
  }
  return at + 1;
}

}  // namespace

const answers::Relation& source_texts() {
  using answers::field;
  using answers::Type;
  using Row = SourceText;
  static const answers::Relation relation{
      "source_texts",
      "source_text",
      "The file that a function is in, or the part of a long one around it",
      {field<Row>("path", Type::kText, "the file", [](const Row& r) -> const std::string& { return r.path; }),
       field<Row>("line", Type::kNumber, "where the function is, from 1", [](const Row& r) { return r.line; }),
       field<Row>("end_line", Type::kNumber, "of its closing brace; its first line where that was not found",
                  [](const Row& r) { return r.end_line; }),
       field<Row>("first_line", Type::kNumber, "of the text", [](const Row& r) { return r.first_line; }),
       field<Row>("text", Type::kText, "its lines", [](const Row& r) { return r.text; })}};
  return relation;
}

std::size_t line_offset(std::string_view text, std::uint32_t line) {
  std::size_t at = 0;
  for (std::uint32_t i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return text.size();
    at = end + 1;
  }
  return at;
}

std::uint32_t function_end_line(std::string_view text, std::uint32_t line) {
  if (line == 0) return line;
  std::uint32_t now = line;
  std::size_t deep = 0;
  std::size_t round = 0;  // parentheses: a default argument may hold braces
  bool opened = false;
  for (std::size_t at = line_offset(text, line); at < text.size();) {
    const std::size_t behind = skip_token(text, at);
    if (behind > at) {
      for (; at < behind && at < text.size(); ++at) now += text[at] == '\n' ? 1 : 0;
      continue;
    }
    const char c = text[at++];
    if (c == '\n') {
      ++now;
    } else if (c == '(') {
      ++round;
    } else if (c == ')') {
      if (round != 0) --round;
    } else if (c == '{' && (opened || round == 0)) {
      ++deep;
      opened = true;
    } else if (c == '}') {
      if (!opened) {
        if (round == 0) return line;
        continue;
      }
      if (--deep != 0) continue;
      // Initialisers of members have braces too: `: a{1}, b{2} {`.
      const std::size_t next = text.find_first_not_of(" \t\r\n", at);
      if (next == std::string_view::npos || (text[next] != ',' && text[next] != '{')) return now;
      opened = false;
    } else if (c == ';' && !opened && round == 0) {
      return line;
    }
  }
  return line;
}

}  // namespace karst::engine
