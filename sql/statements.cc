// SPDX-License-Identifier: MIT
// Where statements end, as DuckDB's parser has it: quotes, names in quotes, comments, and texts between dollars.
#include <algorithm>
#include <cctype>

#include "sql/database.h"

namespace karst::sql {
namespace {

/// Comments hold comments, as Postgres has it.
std::size_t behind_comment(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("/*")) {
      ++depth;
      at += 2;
    } else if (rest.starts_with("*/")) {
      at += 2;
      if (--depth == 0) return at;
    } else {
      ++at;
    }
  }
  return text.size();
}

/// One past what begins at `at` and may have semicolons in it; `at` where nothing of the kind begins there.
std::size_t behind_quoted(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const auto behind = [&](std::string_view end, std::size_t from) {
    const std::size_t found = rest.find(end, from);
    return found == std::string_view::npos ? text.size() : at + found + end.size();
  };
  if (rest.starts_with("--")) return behind("\n", 2);
  if (rest.starts_with("/*")) return behind_comment(text, at);
  if (rest.front() == '"' || rest.front() == '\'') {
    const bool has_escapes =
        rest.front() == '\'' && at != 0 && (text[at - 1] == 'e' || text[at - 1] == 'E') &&
        (at == 1 || (std::isalnum(static_cast<unsigned char>(text[at - 2])) == 0 && text[at - 2] != '_'));
    for (std::size_t i = 1; i < rest.size(); ++i) {
      if (has_escapes && rest[i] == '\\')
        ++i;
      else if (rest[i] == rest.front())
        return at + i + 1;  // a doubled one begins another quoted text right here
    }
    return text.size();
  }
  if (rest.front() != '$') return at;
  const std::size_t end = rest.find('$', 1);
  if (end == std::string_view::npos) return at;
  const std::string_view tag = rest.substr(1, end - 1);
  const bool is_tag = std::all_of(tag.begin(), tag.end(),
                                  [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
  if (!is_tag || (!tag.empty() && std::isdigit(static_cast<unsigned char>(tag.front())) != 0)) return at;
  return behind(rest.substr(0, end + 1), end + 1);
}

constexpr std::size_t kNowhere = std::string_view::npos;

/// The last statement that is not blank, and the semicolon behind it, or kNowhere.
struct LastStatement {
  std::size_t first = 0, semicolon = kNowhere;
};

LastStatement find_last(std::string_view text) {
  auto [first, semicolon] = LastStatement();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t behind = behind_quoted(text, at);
    const bool is_comment = behind != at && (text[at] == '-' || text[at] == '/');
    const bool is_blank = is_comment || std::isspace(static_cast<unsigned char>(text[at])) != 0;
    if (behind == at && text[at] == ';') {
      if (semicolon == kNowhere) semicolon = at;
    } else if (!is_blank && semicolon != kNowhere) {
      first = semicolon + 1;
      semicolon = kNowhere;
    }
    at = behind == at ? at + 1 : behind;
  }
  return {first, semicolon};
}

}  // namespace

bool is_ended(std::string_view text) { return find_last(text).semicolon != kNowhere; }

std::string_view last_statement(std::string_view text) {
  const auto [first, semicolon] = find_last(text);
  const std::size_t end = semicolon == kNowhere ? text.size() : semicolon;
  std::string_view last = text.substr(first, end - first);
  last.remove_prefix(std::min(last.find_first_not_of("; \n\t\r"), last.size()));
  return last;
}

}  // namespace karst::sql
