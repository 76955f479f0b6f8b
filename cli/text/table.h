// SPDX-License-Identifier: MIT
// Tables for people, in every command that prints one. A table has columns with names; the last one is elastic: it
// holds what is read, mostly a function's name, and takes what is left of the line.
//
// Where a line may have any length (a pipe, --wide), all columns are shown and nothing is cut. Where it may not, the
// default columns are; while they leave too little for the elastic one, the one with the highest `rank` goes.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/text/terminal.h"

namespace karst::cli {

/// How the elastic column's text is shortened.
enum class Shorten {
  kEnd,   ///< "long te..."
  kName,  ///< a function's: parameters and template arguments first, then scopes (cli/text/names.h)
  kPath,  ///< "...last/parts"
};

struct Column {
  std::string key;              ///< for --columns and --sort
  std::string title;            ///< above the column
  bool left = false;            ///< text; numbers stand right
  bool narrow = true;           ///< a default where lines have an end
  int rank = 0;                 ///< of those that are too many the highest goes first; 0: never
  std::size_t least_width = 0;  ///< where lines have no end, so that a pipe's text looks the same each time
};

class Table {
 public:
  /// The last column is the elastic one.
  Table(std::vector<Column> columns, Shorten shorten, std::string indent = {});

  /// Shows these columns, in this order, and the elastic one: "self,calls". Error: there is no such column; the message
  /// names those that there are.
  Status choose(std::string_view keys);
  /// Names of all columns, with commas between.
  std::string keys() const;

  /// One cell for each column, printable(). `more` stands behind the elastic one where lines have no end.
  void add(std::vector<std::string> cells, std::string more = {});
  bool empty() const { return rows_.empty(); }
  /// The head and all rows, without line feeds; `width` 0: lines of any length.
  std::vector<std::string> lines(std::size_t width) const;
  /// The same, printed.
  void print(Screen& screen) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string more;
  };
  std::vector<std::size_t> shown_columns(std::size_t width, const std::vector<std::size_t>& widths) const;

  const std::vector<Column> columns_;
  const Shorten shorten_;
  const std::string indent_;
  std::vector<std::size_t> chosen_;  // empty: the default
  std::vector<Row> rows_;
};

/// `text` at most `width` columns wide; 0: any width.
std::string shorten(std::string_view text, std::size_t width, Shorten how);
/// `text` in lines of at most `width` columns (0: one line), each but the first behind `indent` spaces. Words stay
/// whole unless one is wider than that.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);
/// "calls        8, 2 of them open\n": a line of facts, wrapped.
std::string fact(std::string_view label, std::string_view text, std::size_t width);

}  // namespace karst::cli
