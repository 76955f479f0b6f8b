// SPDX-License-Identifier: MIT
// karst query: traces asked in SQL.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/new_file.h"
#include "base/output_place.h"
#include "cli/command.h"
#include "cli/commands/query_print.h"
#include "cli/commands/query_prompt.h"
#include "cli/commands/query_schema.h"
#include "cli/input/database.h"
#include "cli/input/trace_input.h"
#include "cli/text/progress.h"
#include "cli/text/terminal.h"
#include "format/options.h"
#include "sql/database.h"

namespace karst::cli {
namespace {

struct Options {
  std::vector<std::string> words;  ///< traces, and the SQL behind them
  std::string sql_file;
  std::string output;
  std::string memory;
  bool schema = false;
  bool allow_files = false;
  InputOptions input;  ///< --raw
  PrintOptions print;
};

constexpr const char* kFooter = R"(Every list that Karst can make of a trace is a table, with the names that csv
and json have; --schema prints them all. DuckDB answers: its SQL has windows,
quantiles, joins of ranges and more.

  karst query 'SELECT function, count(*) AS calls, max(duration_ns) AS longest
               FROM calls GROUP BY function ORDER BY longest DESC LIMIT 5'
  karst query a.karst b.karst 'SELECT trace, sum(self_ns) FROM calls GROUP BY trace'

Without SQL it is read from standard input; on a terminal a prompt asks for it,
with a history, completion by Tab, .tables, .schema TABLE and .quit.

Several traces are one database, and each table has a column 'trace' then.
Times are in nanoseconds. A word that SQL knows goes in quotes: SELECT "in".
SQL reads and writes no file, unless --allow-files says so:

  karst query --allow-files app.karst "SELECT * FROM calls JOIN read_csv('log.csv')
               ON begin_ns BETWEEN log_ns AND log_ns + 1000000")";

constexpr std::uint64_t kLeastQueryMemory = 16 << 20;

/// What is asked, of which traces.
struct Question {
  std::vector<std::string> traces;
  std::string sql;
  bool is_prompt = false;  ///< a person is asked for it
};

constexpr const char* kNoSql =
    "no SQL is given: karst query FILE 'SELECT ...', or -f FILE.sql; --schema prints the tables";

std::string all_of(std::istream& file) { return {std::istreambuf_iterator<char>(file), {}}; }

/// The last word is a trace, or SQL.
bool is_trace(const std::string& word) {
  if (word.find_first_of(" \n\t\r;'\"") != std::string::npos) return false;
  std::error_code ignored;
  return word.ends_with(".karst") || std::filesystem::exists(word, ignored);
}

Result<Question> question_of(const Options& options) {
  Question question{options.words, {}};
  if (!options.sql_file.empty()) {
    std::ifstream file(options.sql_file);
    question.sql = all_of(file);
    if (!file) return Error{"cannot read " + options.sql_file + ": " + std::strerror(errno)};
  } else if (!options.words.empty() && !is_trace(options.words.back())) {
    question.sql = options.words.back();
    question.traces.pop_back();
  } else if (::isatty(STDIN_FILENO) != 1) {
    question.sql = all_of(std::cin);
  } else if (::isatty(STDOUT_FILENO) == 1 && options.output.empty()) {
    question.is_prompt = true;
    return question;
  }
  if (question.sql.find_first_not_of(" \n\t\r;") == std::string::npos) return Error{kNoSql};
  if (question.sql.find('\0') != std::string::npos) return Error{"the SQL has a byte 0 in it"};
  return question;
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
  Status written = Unit{};
  {
    const Progress progress("query", [&database] { return (*database)->percent(); });
    written = (*database)->write_parquet(question.sql, file->path());
  }
  if (!written) return fail(explained(written.error()));
  if (const Status finished = file->finish(); !finished) return fail(finished.error());
  return kExitOk;
}

int answer(const Options& options, const Question& question, const Inputs& inputs) {
  const auto database = open_database(inputs, {options.allow_files, {}, {}, memory_of(options)});
  if (!database) return fail(database.error());
  if (question.is_prompt) return run_query_prompt(**database, options.print, inputs);
  return print_answer(**database, question.sql, options.print, inputs, inputs.front()->trace);
}

int query(const Options& options) {
  if (options.schema) {
    Screen screen(options.print.text);
    print_schema(screen);
    return screen.finish();
  }
  const auto question = question_of(options);
  if (!question) return usage_error(question.error().message, "query");
  const bool is_parquet = options.print.format == "parquet";
  if (is_parquet == options.output.empty())
    return usage_error(is_parquet ? "--format parquet needs -o FILE" : "-o goes with --format parquet", "query");
  const auto inputs = open_traces(question->traces, options.input.raw);
  if (!inputs) return fail(inputs.error());
  return is_parquet ? write_parquet(options, *question, *inputs) : answer(options, *question, *inputs);
}

}  // namespace

void register_query(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("query", "Ask traces in SQL");
  command.footer(kFooter);
  command
      .add_option(
          "FILE", options->words,
          "Traces (default: the newest *.karst here), and behind them the SQL (default: standard input, or a prompt)")
      .type_name("");
  command.add_option("-f,--file", options->sql_file, "Read the SQL from this file")
      .type_name("FILE.sql")
      .allow_extra_args(false);
  add_format_options(command, options->print.format, {"text", "csv", "json", "parquet"});
  command.add_option("-o,--output", options->output, "File to write, with --format parquet").type_name("FILE");
  command.add_option("-n,--limit", options->print.limit, "Show only the first N rows as text (1000; 0: all)")
      .type_name("N");
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
  add_text_options(command, options->print.text);
  command.callback([options, &status] { status = query(*options); });
}

}  // namespace karst::cli
