// SPDX-License-Identifier: MIT
// DuckDB itself says which words there are, so that those of a new version, and what the person made, come along.
#include "cli/input/sql_words.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace karst::cli {
namespace {

// Names that need quotes are no words: they may hold anything. Behind a function's name comes its parenthesis.
constexpr const char* kWords = R"(
SELECT kind, word FROM (
  SELECT 'k' AS kind, keyword_name AS word FROM duckdb_keywords()
  UNION SELECT 't', view_name FROM duckdb_views() WHERE NOT internal
  UNION SELECT 't', table_name FROM duckdb_tables() WHERE NOT internal
  UNION SELECT 'c', column_name FROM duckdb_columns() WHERE NOT internal
  UNION SELECT 't', function_name || '(' FROM duckdb_functions() WHERE function_type = 'table_macro' AND NOT internal
  UNION SELECT 'f', function_name || '(' FROM duckdb_functions()
        WHERE function_type IN ('macro', 'scalar', 'aggregate') AND function_name NOT LIKE '\_\_%' ESCAPE '\')
WHERE regexp_full_match(word, '[a-z][a-z0-9_]*[(]?') ORDER BY word, kind)";

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return made;
}

std::string upper(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return made;
}

std::string_view last_word(std::string_view text) {
  std::size_t first = text.size();
  while (first != 0 && is_of_word(text[first - 1])) --first;
  return text.substr(first);
}

}  // namespace

class SqlWords::Reader final : public sql::AnswerSink {
 public:
  explicit Reader(std::vector<Word>& words) : words_(words) {}
  void columns(const std::vector<sql::AnswerColumn>& /*columns*/) override {}
  bool row(const std::vector<std::optional<std::string_view>>& values) override {
    const char kind = values[0].value_or("f").front();
    words_.push_back({kind == 'k'   ? Kind::kKeyword
                      : kind == 't' ? Kind::kTable
                      : kind == 'c' ? Kind::kColumn
                                    : Kind::kFunction,
                      std::string(values[1].value_or(""))});
    return true;
  }

 private:
  std::vector<Word>& words_;
};

void SqlWords::renew() {
  std::vector<Word> words;
  Reader reader(words);
  if (database_.ask(kWords, reader)) words_ = std::move(words);  // else those of before do
}

Completions SqlWords::complete(std::string_view before) const {
  Completions found;
  const std::string_view typed = last_word(before);
  const std::string begin = lower(typed);
  std::string_view rest = before.substr(0, before.size() - typed.size());
  found.replaced = typed.size();
  if (rest == ".") {
    for (const char* const word : {"quit", "schema", "tables"})
      if (std::string_view(word).starts_with(begin)) found.words.emplace_back(word);
    return found;
  }
  const bool is_of_table = !rest.empty() && rest.back() == '.';
  while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.back())) != 0) rest.remove_suffix(1);
  const std::string last = lower(last_word(rest));
  const bool is_table =
      last == "from" || last == "join" || last == "describe" || last == "summarize" || last == "schema";
  if (typed.empty()) return found;
  const bool is_upper = std::isupper(static_cast<unsigned char>(typed.back())) != 0;
  for (const Word& word : words_) {
    if (!std::string_view(word.text).starts_with(begin)) continue;
    if (is_table && word.kind != Kind::kTable) continue;
    if (is_of_table && word.kind != Kind::kColumn) continue;
    std::string text = is_upper && word.kind == Kind::kKeyword ? upper(word.text) : word.text;
    if (found.words.empty() || lower(found.words.back()) != word.text) found.words.push_back(std::move(text));
  }
  return found;
}

}  // namespace karst::cli
