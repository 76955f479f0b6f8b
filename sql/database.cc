// SPDX-License-Identifier: MIT
#include "sql/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>
#include <utility>

#include "sql/columns.h"
#include "sql/gathered.h"
#include "sql/table_function.h"
#include "sql/tables.h"

namespace karst::sql {
namespace {

using duckdb::Api;
using duckdb::Handle;

/// What the library has made, and what gives it back.
template <auto Api::*Destroy>
class Held {
 public:
  explicit Held(const Api& api) : api_(api) {}
  ~Held() {
    if (handle_ != nullptr) (api_.*Destroy)(&handle_);
  }
  Held(Held&&) = delete;

  Handle get() const { return handle_; }
  Handle* out() { return &handle_; }

 private:
  const Api& api_;
  Handle handle_ = nullptr;
};

class HeldResult {
 public:
  explicit HeldResult(const Api& api) : api_(api) {}
  ~HeldResult() { api_.destroy_result(&result_); }
  HeldResult(HeldResult&&) = delete;

  duckdb::Result* out() { return &result_; }
  Error error() {
    const char* const why = api_.result_error(&result_);
    return {why == nullptr ? "DuckDB gives no reason" : why};
  }

 private:
  const Api& api_;
  duckdb::Result result_{};
};

Status run(const Api& api, Handle connection, const std::string& text) {
  HeldResult result(api);
  if (api.query(connection, text.c_str(), result.out()) != duckdb::kSuccess) return result.error();
  return Unit{};
}

std::string text_of_sql(std::string_view text) {
  std::string made = "'";
  for (const char c : text) made.append(c == '\'' ? 2 : 1, c);
  return made + "'";
}

// A dictionary is tried for each column until it has too many values: names have few, times and ids have one for each
// row, for which that is lost time. A higher level takes longer and saves nothing.
constexpr const char* kParquet =
    "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, DICTIONARY_SIZE_LIMIT 4096, PARQUET_VERSION v2";
constexpr const char* kOneFile = ", USE_TMP_FILE false";

AnswerColumn::Kind kind_of(duckdb::Type type) {
  using Kind = AnswerColumn::Kind;
  if (type == duckdb::kBoolean) return Kind::kFlag;
  if ((type >= duckdb::kTinyInt && type <= duckdb::kDouble) || type == duckdb::kHugeInt || type == duckdb::kUHugeInt ||
      type == duckdb::kDecimal)
    return Kind::kNumber;
  if (type == duckdb::kList || type == duckdb::kStruct || type == duckdb::kMap || type == duckdb::kUnion ||
      type == duckdb::kArray)
    return Kind::kNested;
  return Kind::kText;
}

/// A query whose columns are those of `query` as text.
std::string as_text(std::string_view query, const std::vector<AnswerColumn>& columns) {
  std::string casts, names;
  for (std::size_t at = 0; at < columns.size(); ++at) {
    const char* const comma = at == 0 ? "" : ", ";
    casts += fmt::format(
        "{}CAST({} AS VARCHAR)", comma,
        columns[at].kind == AnswerColumn::Kind::kNested ? fmt::format("to_json(c{})", at) : fmt::format("c{}", at));
    names += fmt::format("{}c{}", comma, at);
  }
  return fmt::format("SELECT {} FROM (\n{}\n) AS answer({})", casts, query, names);
}

/// Hands on the rows of texts that a statement answers.
/// Without a sink they go nowhere.
Status each_row(const Api& api, Handle prepared, std::size_t columns, AnswerSink* sink) {
  HeldResult result(api);
  if (api.execute_prepared_streaming(prepared, result.out()) != duckdb::kSuccess) return result.error();
  std::vector<std::optional<std::string_view>> values(columns);
  while (true) {
    Held<&Api::destroy_data_chunk> chunk(api);
    *chunk.out() = api.fetch_chunk(*result.out());
    if (chunk.get() == nullptr) break;
    if (sink == nullptr) continue;
    std::vector<const duckdb::Text*> texts;
    std::vector<const std::uint64_t*> validity;
    for (std::size_t at = 0; at < columns; ++at) {
      Handle const vector = api.data_chunk_get_vector(chunk.get(), at);
      texts.push_back(static_cast<const duckdb::Text*>(api.vector_get_data(vector)));
      validity.push_back(api.vector_get_validity(vector));
    }
    const std::uint64_t rows = api.data_chunk_get_size(chunk.get());
    for (std::uint64_t row = 0; row < rows; ++row) {
      for (std::size_t at = 0; at < columns; ++at) {
        const bool known = validity[at] == nullptr || (validity[at][row / 64] >> (row % 64) & 1U) != 0;
        values[at] = known ? std::optional(std::string_view(texts[at][row].data(), texts[at][row].size)) : std::nullopt;
      }
      if (!sink->row(values)) return Unit{};
    }
  }
  if (const char* const why = api.result_error(result.out()); why != nullptr && *why != 0) return Error{why};
  return Unit{};
}

}  // namespace

struct Database::Impl {
  static std::vector<Source> with(const std::shared_ptr<Work>& work, std::vector<Source> sources) {
    for (Source& source : sources) source.work = work;
    return sources;
  }

  Impl(const Api& of, std::vector<Source> asked)
      : api(of), sources(with(work, std::move(asked))), names(of, sources), database(of), connection(of) {
    for (const Source& source : sources) gathered.emplace_back(source);
  }

  const Api& api;
  const std::shared_ptr<Work> work = std::make_shared<Work>();
  std::string only_directory = {};
  const std::vector<Source> sources;
  std::deque<Gathered> gathered;  // by source
  const Names names;
  std::deque<TraceTable> tables;
  Held<&Api::close> database;
  Held<&Api::disconnect> connection;

  Status open(const DatabaseOptions& options);
  Status add_tables();
  Status lock(const DatabaseOptions& options);
  /// Runs all statements but the last one, which it prepares.
  Status before_last(const std::string& text, Handle* last);
  Status answer(std::string_view text, Handle prepared, AnswerSink& sink);
  Status ask(const std::string& text, AnswerSink& sink);
  /// A table into Parquet, below only_directory. `options`: of COPY, behind a comma.
  Status copy(const std::string& table, const std::string& to, const char* options);
  /// The same, a part for each process.
  Status write_parts(const std::string& table);
};

Status Database::Impl::open(const DatabaseOptions& options) {
  Held<&Api::destroy_config> config(api);
  if (api.create_config(config.out()) != duckdb::kSuccess) return Error{"DuckDB takes no settings"};
  std::vector<std::pair<const char*, std::string>> settings{{"autoinstall_known_extensions", "false"},
                                                            {"autoload_known_extensions", "false"},
                                                            {"allow_community_extensions", "false"},
                                                            {"temp_directory", ""}};
  if (options.memory != 0) settings.emplace_back("memory_limit", fmt::format("{}KiB", options.memory >> 10U));
  for (const auto& setting : settings) {
    if (api.set_config(config.get(), setting.first, setting.second.c_str()) != duckdb::kSuccess)
      return Error{fmt::format("DuckDB does not take {} = '{}'", setting.first, setting.second)};
  }
  char* why = nullptr;
  if (api.open_ext(nullptr, database.out(), config.get(), &why) != duckdb::kSuccess) {
    Error error{why == nullptr ? "DuckDB does not start" : why};
    api.free(why);
    return error;
  }
  if (api.connect(database.get(), connection.out()) != duckdb::kSuccess) return Error{"DuckDB takes no connection"};
  if (Status added = add_tables(); !added) return added;
  only_directory = options.only_directory;
  return lock(options);
}

Status Database::Impl::add_tables() {
  for (const Table& table : sql::tables()) {
    if (Status added = tables.emplace_back(api, names, sources, gathered, table).add_to(connection.get()); !added)
      return added;
  }
  for (const Derived& one : derived()) {
    if (const Status made = run(api, connection.get(), one.sql); !made)
      return Error{fmt::format("{}: {}", one.name, made.error().message)};
  }
  return Unit{};
}

/// From here on SQL is anybody's.
Status Database::Impl::lock(const DatabaseOptions& options) {
  std::string settings = "SET enable_progress_bar = true; SET enable_progress_bar_print = false;";
  // What goes into a file may come from all threads as it likes; what ORDER BY says is kept.
  if (!options.only_file.empty() || !options.only_directory.empty())
    settings += "SET preserve_insertion_order = false;";
  if (!options.only_file.empty()) settings += "SET allowed_paths = [" + text_of_sql(options.only_file) + "];";
  if (!options.only_directory.empty())
    settings += "SET allowed_directories = [" + text_of_sql(options.only_directory) + "];";
  if (!options.allow_files) settings += "SET enable_external_access = false;";
  return run(api, connection.get(), settings + "SET lock_configuration = true");
}

Status Database::Impl::before_last(const std::string& text, Handle* last) {
  Held<&Api::destroy_extracted> statements(api);
  const std::uint64_t count = api.extract_statements(connection.get(), text.c_str(), statements.out());
  if (count == 0) {
    const char* const why = api.extract_statements_error(statements.get());
    return Error{why == nullptr || *why == 0 ? "there is no statement in it" : why};
  }
  for (std::uint64_t at = 0; at < count; ++at) {
    Held<&Api::destroy_prepare> before(api);
    Handle* const prepared = at + 1 == count ? last : before.out();
    if (api.prepare_extracted_statement(connection.get(), statements.get(), at, prepared) != duckdb::kSuccess) {
      const char* const why = api.prepare_error(*prepared);
      return Error{why == nullptr ? "DuckDB gives no reason" : why};
    }
    if (at + 1 == count) break;
    if (Status done = each_row(api, *prepared, 0, nullptr); !done) return done;
  }
  return Unit{};
}

Status Database::Impl::answer(std::string_view text, Handle prepared, AnswerSink& sink) {
  std::vector<AnswerColumn> columns;
  bool is_text = true;
  for (std::uint64_t at = 0; at < api.prepared_statement_column_count(prepared); ++at) {
    const duckdb::Type type = api.prepared_statement_column_type(prepared, at);
    columns.push_back({api.prepared_statement_column_name(prepared, at), kind_of(type)});
    is_text &= type == duckdb::kVarchar;
  }
  const duckdb::StatementType type = api.prepared_statement_type(prepared);
  if (type == duckdb::kSelect) {
    Held<&Api::destroy_prepare> texts(api);
    if (api.prepare(connection.get(), as_text(text, columns).c_str(), texts.out()) != duckdb::kSuccess)
      return Error{api.prepare_error(texts.get())};
    sink.columns(columns);
    return each_row(api, texts.get(), columns.size(), &sink);
  }
  if (!is_text) columns.clear();  // a number of rows that were changed, and the like
  if (!columns.empty()) sink.columns(columns);
  return each_row(api, prepared, columns.size(), columns.empty() ? nullptr : &sink);
}

Status Database::Impl::copy(const std::string& table, const std::string& to, const char* options) {
  return run(api, connection.get(),
             fmt::format("COPY {} TO {} ({}{})", table, text_of_sql(only_directory + "/" + to), kParquet, options));
}

/// DuckDB takes four times as long to tell rows of several processes apart as to write those of one.
Status Database::Impl::write_parts(const std::string& table) {
  std::set<std::uint32_t> pids;
  for (const Source& source : sources)
    for (const reader::Thread* thread : source.threads) pids.insert(source.trace.processes()[thread->process].pid);
  if (pids.size() > 1) return copy(table, table, ", PARTITION_BY (pid), WRITE_PARTITION_COLUMNS true");
  const std::string part = pids.empty() ? table : fmt::format("{}/pid={}", table, *pids.begin());
  std::error_code failed;
  std::filesystem::create_directories(only_directory + "/" + part, failed);
  if (failed) return Error{failed.message()};
  return copy(table, part + "/data_0.parquet", kOneFile);
}

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// DuckDB's log may lie in a file that it was not allowed to open. It would try once more as it ends, and abort.
Database::~Database() {
  if (impl_->connection.get() != nullptr)
    static_cast<void>(run(impl_->api, impl_->connection.get(), "CALL disable_logging()"));
}

Result<std::unique_ptr<Database>> Database::open(const Api& api, std::vector<Source> sources,
                                                 const DatabaseOptions& options) {
  std::unique_ptr<Database> made(new Database(std::make_unique<Impl>(api, std::move(sources))));
  if (const Status opened = made->impl_->open(options); !opened) return opened.error();
  return made;
}

void Database::interrupt() {
  impl_->work->stop = true;
  impl_->api.interrupt(impl_->connection.get());
}

std::optional<double> Database::percent() const {
  const Work& work = *impl_->work;
  if (const std::uint64_t total = work.total; total != 0)
    return std::min(100.0, 100.0 * static_cast<double>(work.done) / static_cast<double>(total));
  const double percent = impl_->api.query_progress(impl_->connection.get()).percent;
  return percent >= 0 ? std::optional(percent) : std::nullopt;
}

Status Database::ask(const std::string& text, AnswerSink& sink) {
  impl_->work->begin();
  Status asked = impl_->ask(text, sink);
  // What fails then says so in as many ways as there are threads.
  if (!asked && impl_->work->stop) return Error{"interrupted"};
  return asked;
}

Status Database::Impl::ask(const std::string& text, AnswerSink& sink) {
  Held<&Api::destroy_prepare> last(api);
  if (Status made = before_last(text, last.out()); !made) return made;
  return answer(last_statement(text), last.get(), sink);
}

Status Database::write_parquet(const std::string& text, const std::string& path) {
  const Api& api = impl_->api;
  impl_->work->begin();
  Held<&Api::destroy_prepare> last(api);
  if (Status made = impl_->before_last(text, last.out()); !made) return made;
  if (api.prepared_statement_type(last.get()) != duckdb::kSelect) return Error{"only what a SELECT answers has rows"};
  return run(api, impl_->connection.get(),
             fmt::format("COPY (\n{}\n) TO {} ({}{})", last_statement(text), text_of_sql(path), kParquet, kOneFile));
}

Status Database::write_all_parquet() {
  constexpr const char* kParted = "calls";
  for (Gathered& of : impl_->gathered) of.by_the_way(tables());  // calls are written first
  for (const Table& table : tables()) {
    const std::string& name = table.relation->name;
    const Status written =
        name == kParted ? impl_->write_parts(name) : impl_->copy(name, fmt::format("{}.parquet", name), kOneFile);
    if (!written) return Error{fmt::format("table {}: {}", name, written.error().message)};
  }
  return Unit{};
}

}  // namespace karst::sql
