// SPDX-License-Identifier: MIT
#include "cli/commands/query_print.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/data.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/text/progress.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

using sql::AnswerColumn;
using Values = std::vector<std::optional<std::string_view>>;

class TablePrinter final : public sql::AnswerSink {
 public:
  TablePrinter(Screen& screen, std::size_t limit) : screen_(screen), limit_(limit) {}

  void columns(const std::vector<AnswerColumn>& columns) override {
    is_plan_ = !columns.empty() && columns.front().name == "explain_key";
    columns_ = columns;
  }
  bool row(const Values& values) override {
    if (limit_ != 0 && rows_ == limit_) {
      is_cut_ = true;
      return false;
    }
    ++rows_;
    if (is_plan_) return add_plan(values);
    std::vector<std::string>& cells = cells_.emplace_back();
    for (const auto& value : values) cells.push_back(value ? printable(*value) : "-");
    return true;
  }
  void print() const {
    if (is_plan_)
      screen_.output().append(plan_);
    else if (!columns_.empty())
      print_table();
    if (is_cut_) screen_.output().append(fmt::format("(the first {}; --limit 0: all)\n", plural(rows_, "row")));
  }

 private:
  /// What EXPLAIN answers is a drawing.
  bool add_plan(const Values& values) {
    plan_ += printable_lines(values.back().value_or("")) + "\n";
    return true;
  }

  void print_table() const {
    std::vector<Column> made;
    for (const AnswerColumn& column : columns_) {
      const std::string name = printable(column.name);
      made.push_back({name, name, !is_number(column)});
    }
    const std::size_t most = most_of_text();
    Table table(std::move(made), Shorten::kEnd);
    for (std::vector<std::string> cells : cells_) {
      for (std::size_t at = 0; at < cells.size(); ++at)
        if (!is_number(columns_[at])) cells[at] = shorten(cells[at], most, how(columns_[at]));
      table.add(std::move(cells));
    }
    table.print(screen_);
  }

  static bool is_number(const AnswerColumn& column) { return column.kind == AnswerColumn::Kind::kNumber; }
  static Shorten how(const AnswerColumn& column) {
    return column.name == "function" || column.name == "caller" ? Shorten::kName : Shorten::kEnd;
  }

  /// So wide columns of text may be that numbers are seen whole beside them; 0: any width.
  std::size_t most_of_text() const {
    constexpr std::size_t kLeast = 12;
    if (screen_.width() == 0) return 0;
    std::size_t numbers = 0, texts = 0;
    for (std::size_t at = 0; at < columns_.size(); ++at) {
      std::size_t width = text_width(columns_[at].name);
      for (const std::vector<std::string>& cells : cells_) width = std::max(width, text_width(cells[at]));
      if (is_number(columns_[at]))
        numbers += width + 2;
      else
        ++texts;
    }
    if (texts == 0) return kLeast;
    const std::size_t room = screen_.width() > numbers ? screen_.width() - numbers : 0;
    return std::max(kLeast, room / texts > 2 ? room / texts - 2 : 0);
  }

  Screen& screen_;
  const std::size_t limit_;
  bool is_plan_ = false;
  std::string plan_;
  std::vector<AnswerColumn> columns_;
  std::vector<std::vector<std::string>> cells_;  // by row
  std::size_t rows_ = 0;
  bool is_cut_ = false;
};

class CsvPrinter final : public sql::AnswerSink {
 public:
  explicit CsvPrinter(Output& output) : output_(output) {}
  void columns(const std::vector<AnswerColumn>& columns) override {
    columns_ = columns;
    for (std::size_t at = 0; at < columns.size(); ++at)
      output_.append((at == 0 ? "" : ",") + answers::csv_field(columns[at].name));
    output_.append("\n");
  }
  bool row(const Values& values) override {
    for (std::size_t at = 0; at < values.size(); ++at) {
      if (at != 0) output_.append(',');
      if (!values[at]) continue;
      if (columns_[at].kind == AnswerColumn::Kind::kNumber)
        output_.append(*values[at]);
      else
        output_.append(answers::csv_field(*values[at]));
    }
    output_.append('\n');
    return !output_.failed();
  }

 private:
  Output& output_;
  std::vector<AnswerColumn> columns_;
};

/// A list of objects, a line each.
class JsonPrinter final : public sql::AnswerSink {
 public:
  explicit JsonPrinter(Output& output) : output_(output) { output_.append("["); }
  void columns(const std::vector<AnswerColumn>& columns) override {
    for (const AnswerColumn& column : columns) {
      keys_.push_back(json_string(column.name) + ":");
      kinds_.push_back(column.kind);
    }
  }
  bool row(const Values& values) override {
    std::string line = is_first_ ? "\n{" : ",\n{";
    is_first_ = false;
    for (std::size_t at = 0; at < values.size(); ++at) {
      if (at != 0) line += ',';
      line += keys_[at];
      add(line, kinds_[at], values[at]);
    }
    output_.append(line + "}");
    return !output_.failed();
  }
  void end() { output_.append("\n]\n"); }

 private:
  static void add(std::string& line, AnswerColumn::Kind kind, const std::optional<std::string_view>& value) {
    using Kind = AnswerColumn::Kind;
    const bool is_number = value && !value->empty() && (value->back() >= '0' && value->back() <= '9');
    if (!value || (kind == Kind::kNumber && !is_number))  // inf and nan
      line += "null";
    else if (kind == Kind::kText)
      append_json_string(line, *value);
    else
      line += *value;
  }

  Output& output_;
  std::vector<std::string> keys_;
  std::vector<AnswerColumn::Kind> kinds_;
  bool is_first_ = true;
};

/// Asks, and tells of it on stderr while it takes long; not where the answer comes on the same terminal meanwhile.
Status ask(sql::Database& database, const std::string& sql, sql::AnswerSink& sink, bool is_printed_later) {
  const Progress progress(
      "query", [&database] { return database.percent(); }, is_printed_later || ::isatty(STDOUT_FILENO) != 1);
  return database.ask(sql, sink);
}

}  // namespace

Error explained(const Error& error) {
  const auto says = [&error](std::string_view text) { return error.message.find(text) != std::string::npos; };
  if (says("Out of Memory"))
    return {error.message +
            "\nAsk for fewer rows and columns: a smaller sort, join or GROUP BY takes less. --memory 8G lets a query "
            "use more; half of the machine's is usual."};
  if (says("external_access") || says("disabled by config"))
    return {error.message + "\n--allow-files lets SQL read and write files"};
  return error;
}

int print_answer(sql::Database& database, const std::string& sql, const PrintOptions& options, const Inputs& partial,
                 const reader::Trace& first) {
  if (options.format == "text") {
    Screen screen(options.text);
    TablePrinter printer(screen, options.limit);
    if (const Status asked = ask(database, sql, printer, true); !asked) return fail(explained(asked.error()));
    for (const auto& input : partial) say_partial(screen, *input);
    printer.print();
    return screen.finish(&first);
  }
  for (const auto& input : partial) warn_partial(*input);
  Output output = Output::to_stdout();
  if (options.format == "csv") {
    CsvPrinter printer(output);
    if (const Status asked = ask(database, sql, printer, false); !asked) return fail(explained(asked.error()));
  } else {
    JsonPrinter printer(output);
    if (const Status asked = ask(database, sql, printer, false); !asked) return fail(explained(asked.error()));
    printer.end();
  }
  return finish_output(output, first);
}

}  // namespace karst::cli
