// SPDX-License-Identifier: MIT
// karst query: traces asked in SQL.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/data.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/output.h"
#include "base/output_place.h"
#include "cli/command.h"
#include "cli/input/database.h"
#include "cli/input/trace_input.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "format/options.h"
#include "sql/columns.h"
#include "sql/database.h"
#include "sql/tables.h"

namespace karst::cli {
namespace {

using sql::AnswerColumn;
using Values = std::vector<std::optional<std::string_view>>;

struct Options {
  std::vector<std::string> words;  ///< traces, and the SQL behind them
  std::string sql_file;
  std::string format = "text";
  std::string output;
  std::string memory;
  std::size_t limit = 1000;
  bool schema = false;
  bool allow_files = false;
  InputOptions input;  ///< --raw
  TextOptions text;
};

constexpr const char* kFooter = R"(Every list that Karst can make of a trace is a table, with the names that csv
and json have; --schema prints them all. DuckDB answers: its SQL has windows,
quantiles, joins of ranges and more.

  karst query 'SELECT function, count(*) AS calls, max(duration_ns) AS longest
               FROM calls GROUP BY function ORDER BY longest DESC LIMIT 5'
  karst query a.karst b.karst 'SELECT trace, sum(self_ns) FROM calls GROUP BY trace'

Several traces are one database, and each table has a column 'trace' then.
Times are in nanoseconds. A word that SQL knows goes in quotes: SELECT "in".
SQL reads and writes no file, unless --allow-files says so:

  karst query --allow-files app.karst "SELECT * FROM calls JOIN read_csv('log.csv')
               ON begin_ns BETWEEN log_ns AND log_ns + 1000000")";

constexpr std::uint64_t kLeastQueryMemory = 16 << 20;

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
    if (!columns_.empty() && !is_plan_) print_table();
    if (is_cut_) screen_.output().append(fmt::format("(the first {}; --limit 0: all)\n", plural(rows_, "row")));
  }

 private:
  /// What EXPLAIN answers is a drawing.
  bool add_plan(const Values& values) {
    screen_.output().append(printable_lines(values.back().value_or("")) + "\n");
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

void print_schema(Screen& screen) {
  const char* before = "";
  for (const sql::Table& table : sql::tables()) {
    const std::string head = fmt::format("{}: {}", table.relation->name, table.relation->sentence);
    screen.output().append(before + screen.paint(Style::kStrong, wrap(head, screen.width(), 2)) + "\n");
    before = "\n";
    for (const sql::Column& column : sql::columns_of(*table.relation, false))
      screen.output().append(
          wrap(fmt::format("  {:<18} {:<8} {}", column.name, sql::type_name(column.type), column.sentence),
               screen.width(), 30) +
          "\n");
  }
  screen.output().append("\n");
  for (const sql::Derived& one : sql::derived())
    screen.output().append(wrap(fmt::format("{:<22} {}", one.name, one.sentence), screen.width(), 25) + "\n");
}

/// What is asked, of which traces.
struct Question {
  std::vector<std::string> traces;
  std::string sql;
};

constexpr const char* kNoSql =
    "no SQL is given: karst query FILE 'SELECT ...', or -f FILE.sql; --schema prints the tables";

Result<Question> question_of(const Options& options) {
  Question question{options.words, {}};
  if (!options.sql_file.empty()) {
    std::ifstream file(options.sql_file);
    question.sql.assign(std::istreambuf_iterator<char>(file), {});
    if (!file) return Error{"cannot read " + options.sql_file + ": " + std::strerror(errno)};
  } else if (!options.words.empty()) {
    question.sql = options.words.back();
    question.traces.pop_back();
    if (question.sql.ends_with(".karst") && question.sql.find(' ') == std::string::npos) return Error{kNoSql};
  }
  if (question.sql.find_first_not_of(" \n\t\r;") == std::string::npos) return Error{kNoSql};
  if (question.sql.find('\0') != std::string::npos) return Error{"the SQL has a byte 0 in it"};
  return question;
}

/// In words that say what to do.
Error explained(const Error& error) {
  if (error.message.find("Out of Memory") != std::string::npos)
    return {error.message + "\n--memory 8G lets it use more"};
  if (error.message.find("external_access") != std::string::npos ||
      error.message.find("disabled by config") != std::string::npos)
    return {error.message + "\n--allow-files lets SQL read and write files"};
  return error;
}

/// A file that gets its name when it is whole.
class ParquetFile {
 public:
  static Result<ParquetFile> create(const std::string& path) {
    auto place = OutputPlace::find(path);
    if (!place) return Error{"cannot write " + path + ": " + place.error().message};
    using There = OutputPlace::There;
    if (place->there() != There::kNothing && place->there() != There::kFile)
      return Error{"cannot write " + path + ": Parquet needs a file"};
    auto file = NewFile::create(place->directory(), place->name());
    if (!file) return Error{"cannot write " + path + ": " + file.error().message};
    return ParquetFile(path, std::move(*place), std::move(*file));
  }
  /// By which DuckDB can open it.
  std::string path() const { return fmt::format("/proc/self/fd/{}", file_.descriptor()); }
  Status finish() {
    file_.take_usual_mode();
    int error = file_.settle();
    if (error == 0) error = file_.replace(place_.name());
    if (error != 0) return Error{"cannot write " + name_ + ": " + std::strerror(error)};
    return Unit{};
  }

 private:
  ParquetFile(std::string name, OutputPlace place, NewFile file)
      : name_(std::move(name)), place_(std::move(place)), file_(std::move(file)) {}

  std::string name_;
  OutputPlace place_;
  NewFile file_;
};

std::uint64_t memory_of(const Options& options) {
  std::uint64_t memory = 0;
  if (!options.memory.empty()) (void)format::parse_size(options.memory.c_str(), kLeastQueryMemory, memory);
  return memory;
}

int write_parquet(const Options& options, const Question& question, const Inputs& inputs) {
  auto file = ParquetFile::create(options.output);
  if (!file) return fail(file.error());
  const auto database = open_database(inputs, {options.allow_files, file->path(), {}, memory_of(options)});
  if (!database) return fail(database.error());
  if (const Status written = (*database)->write_parquet(question.sql, file->path()); !written)
    return fail(explained(written.error()));
  if (const Status finished = file->finish(); !finished) return fail(finished.error());
  return kExitOk;
}

int print(const Options& options, const Question& question, const Inputs& inputs) {
  const auto database = open_database(inputs, {options.allow_files, {}, {}, memory_of(options)});
  if (!database) return fail(database.error());
  const reader::Trace& first = inputs.front()->trace;
  if (options.format == "text") {
    Screen screen(options.text);
    TablePrinter printer(screen, options.limit);
    if (const Status asked = (*database)->ask(question.sql, printer); !asked) return fail(explained(asked.error()));
    for (const auto& input : inputs) say_partial(screen, *input);
    printer.print();
    return screen.finish(&first);
  }
  for (const auto& input : inputs) warn_partial(*input);
  Output output = Output::to_stdout();
  if (options.format == "csv") {
    CsvPrinter printer(output);
    if (const Status asked = (*database)->ask(question.sql, printer); !asked) return fail(explained(asked.error()));
  } else {
    JsonPrinter printer(output);
    if (const Status asked = (*database)->ask(question.sql, printer); !asked) return fail(explained(asked.error()));
    printer.end();
  }
  return finish_output(output, first);
}

int query(const Options& options) {
  if (options.schema) {
    Screen screen(options.text);
    print_schema(screen);
    return screen.finish();
  }
  const auto question = question_of(options);
  if (!question) return usage_error(question.error().message, "query");
  const bool is_parquet = options.format == "parquet";
  if (is_parquet == options.output.empty())
    return usage_error(is_parquet ? "--format parquet needs -o FILE" : "-o goes with --format parquet", "query");
  const auto inputs = open_traces(question->traces, options.input.raw);
  if (!inputs) return fail(inputs.error());
  return is_parquet ? write_parquet(options, *question, *inputs) : print(options, *question, *inputs);
}

}  // namespace

void register_query(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("query", "Ask traces in SQL");
  command.footer(kFooter);
  command.add_option("FILE", options->words, "Traces (default: the newest *.karst here), and behind them the SQL")
      .type_name("");
  command.add_option("-f,--file", options->sql_file, "Read the SQL from this file")
      .type_name("FILE.sql")
      .allow_extra_args(false);
  add_format_options(command, options->format, {"text", "csv", "json", "parquet"});
  command.add_option("-o,--output", options->output, "File to write, with --format parquet").type_name("FILE");
  command.add_option("-n,--limit", options->limit, "Show only the first N rows as text (1000; 0: all)").type_name("N");
  command.add_flag("--schema", options->schema, "Print all tables and their columns, and what each is");
  command.add_flag("--allow-files", options->allow_files, "Let SQL read and write files");
  command.add_option("--memory", options->memory, "Memory that a query may use (half of the machine's)")
      .type_name("SIZE")
      .check([](const std::string& text) {
        std::uint64_t bytes = 0;
        return format::parse_size(text.c_str(), kLeastQueryMemory, bytes)
                   ? std::string()
                   : "'" + text + "' is no size of 16M or more, as 2G is";
      });
  add_raw_option(command, options->input);
  add_text_options(command, options->text);
  command.callback([options, &status] { status = query(*options); });
}

}  // namespace karst::cli
