// SPDX-License-Identifier: MIT
// The words of SQL that a person may mean: tables, columns, macros and functions of a database, and keywords.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/input/line_editor.h"
#include "sql/database.h"

namespace karst::cli {

/// Of one thread.
class SqlWords {
 public:
  /// `database` outlives it.
  explicit SqlWords(sql::Database& database) : database_(database) { renew(); }
  /// Takes what there is now: a statement may have made a view.
  void renew();
  /// What the last word before the cursor may become. Behind FROM and JOIN that is a table.
  Completions complete(std::string_view before) const;

 private:
  enum class Kind : std::uint8_t { kKeyword, kTable, kColumn, kFunction };
  struct Word {
    Kind kind;
    std::string text;
  };
  class Reader;

  sql::Database& database_;
  std::vector<Word> words_;  // sorted by their text
};

}  // namespace karst::cli
