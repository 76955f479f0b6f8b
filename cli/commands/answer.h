// SPDX-License-Identifier: MIT
// What commands have in common whose answer is a relation (answers/relation.h): their options, and how rows are sorted,
// cut and printed, for people and for programs.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/relation.h"
#include "base/json.h"
#include "base/output.h"
#include "base/result.h"
#include "cli/input/trace_input.h"
#include "cli/options.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "reader/trace.h"

namespace karst::cli {

struct AnswerOptions {
  std::string format = "text";
  std::string sort;  ///< key of a field; empty: as the rows come
  std::string columns;
  std::size_t limit = 0;  ///< 0: all
  bool has_limit = false;
  TextOptions text;

  bool is_text() const { return format == "text"; }
};

/// --format and --json, --sort, --columns, --limit, and those of text. `sort` and `limit`: what goes without an option;
/// the limit goes for text alone. --format takes text, csv, json and `more_formats`. The rows are called `words`:
/// "requests". Several relations: the answer is one of them, and what goes by fields of another one is refused.
void add_answer_options(Command command, AnswerOptions& options, const std::vector<const answers::Relation*>& relations,
                        const std::string& words, const std::string& sort, std::size_t limit,
                        const std::vector<std::string>& more_formats = {});
inline void add_answer_options(Command command, AnswerOptions& options, const answers::Relation& relation,
                               const std::string& words, const std::string& sort, std::size_t limit) {
  add_answer_options(command, options, std::vector{&relation}, words, sort, limit);
}

/// Help: the relation's sentence, `example`, its fields with what they are, `rest`.
std::string answer_footer(const answers::Relation& relation, std::string_view example, std::string_view rest);

class Answer {
 public:
  /// `rows`, which must outlive it as all else does, are of the relation's type. They are sorted and cut.
  Answer(const reader::Trace& trace, const answers::Relation& relation, const AnswerOptions& options,
         std::vector<const void*> rows)
      : Answer(&trace, relation, options, std::move(rows)) {}
  /// Of no trace: the relation has no functions, threads and processes.
  Answer(const answers::Relation& relation, const AnswerOptions& options, std::vector<const void*> rows)
      : Answer(nullptr, relation, options, std::move(rows)) {}

  /// How many there are in all.
  std::size_t count() const { return rows_.size(); }
  std::size_t shown() const { return shown_; }
  /// Those that are shown, in order.
  std::span<const void* const> rows() const { return std::span(rows_).first(shown_); }
  std::span<const void* const> left_out() const { return std::span(rows_).subspan(shown_); }
  /// Error: --sort names what there is not. What prints asks this first, but for words of a command's own.
  Status known() const;
  /// Error: --columns or --sort name what there is not.
  Status print_table(Screen& screen) const;
  void print_csv(Output& output) const;
  /// The same, to be printed elsewhere. `wide`: where lines have no end.
  Result<Table> table(bool wide) const;
  /// A field of an object that is open: the relation's name, and its rows.
  void write_json(Json& json, Output& output) const;
  /// How many rows --limit has left out of the text, if any; a row is called `one`, or as its relation calls it.
  void say_left_out(Screen& screen, std::string one = {}) const;

 private:
  Answer(const reader::Trace* trace, const answers::Relation& relation, const AnswerOptions& options,
         std::vector<const void*> rows);
  bool is_shown(const answers::Field& field, bool wide) const;

  const reader::Trace* trace_;
  const answers::Relation& relation_;
  const AnswerOptions& options_;
  std::vector<const void*> rows_;
  std::size_t shown_;
  std::string sort_;     // key of a field; empty: as the rows came
  std::string columns_;  // keys, with commas between
};

/// Prints to stdout for other programs: {"trace": ..., "count": ..., `facts`, the answer}, or CSV. The exit status.
int print_answer(
    const AnswerOptions& options, const Input& input, const Answer& answer,
    const std::function<void(Json&)>& facts = [](Json&) {});

/// Of no trace: {"count": ..., `facts`, the answer} or CSV; for people a table, and what --limit left out.
int print_answer(
    const AnswerOptions& options, const Answer& answer, const std::function<void(Json&)>& facts = [](Json&) {});

/// {`facts`, the answer}, or CSV. The caller finishes `output`.
void write_answer(
    const AnswerOptions& options, const Answer& answer, Output& output,
    const std::function<void(Json&)>& facts = [](Json&) {});

/// The same; for people a table, and what --limit left out. For answers that have no words of their own beside it.
int print_table_or_data(const AnswerOptions& options, const Input& input, const Answer& answer);

/// Of a list of rows their addresses.
template <typename Row>
std::vector<const void*> addresses(const std::vector<Row>& rows) {
  std::vector<const void*> all;
  all.reserve(rows.size());
  for (const Row& row : rows) all.push_back(&row);
  return all;
}

}  // namespace karst::cli
