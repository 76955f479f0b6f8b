// SPDX-License-Identifier: MIT
#include "cli/commands/export_tables.h"

#include <utility>

#include "cli/command.h"
#include "cli/input/database.h"
#include "cli/text/progress.h"
#include "export/tables.h"

namespace karst::cli {
namespace {

Status write_sqlite(const sql::Source& source, const std::string& output) {
  return exporting::export_sqlite(source, output);
}
Status write_csv(const sql::Source& source, const std::string& output) { return exporting::export_csv(source, output); }
Status write_parquet(const sql::Source& source, const std::string& output) {
  const auto api = find_duckdb();
  if (!api) return api.error();
  return exporting::export_parquet(**api, source, usual_query_memory(), output);
}

constexpr TableFormat kTableFormats[] = {
    {"sqlite", "all tables of karst query in one file, for sqlite3 and what else reads its databases", write_sqlite},
    {"csv", "the same as a directory with a file for each table", write_csv},
    {"parquet", "the same in Parquet, for DuckDB, pandas, Spark; calls in parts by process", write_parquet}};

/// With the calls that pass the filters.
sql::Source source_of(const Input& input, Progress& progress) {
  const auto choose = [&input, &progress](const reader::Thread& thread, reader::Calls& calls) {
    input.choose(thread, calls);
    progress.done += calls.events;
    if (input.function_set() == nullptr) return;
    analysis::CallFilter within;
    within.below = input.function_set();
    analysis::filter_calls(calls, thread.process, within);
  };
  return {input.trace, input.threads, choose};
}

}  // namespace

std::span<const TableFormat> table_formats() { return kTableFormats; }

const TableFormat* find_table_format(const std::string& name) {
  for (const TableFormat& format : kTableFormats)
    if (name == format.name) return &format;
  return nullptr;
}

int export_tables(const TableFormat& format, const InputOptions& options, const std::string& output) {
  auto input = open_input(options);
  if (!input) return fail(input.error());
  Status written = Unit{};
  {
    Progress progress("exporting tables", (*input)->events);
    written = format.write(source_of(**input, progress), output);
  }
  if (!written) return fail(written.error());
  warn_partial(**input);
  return kExitOk;
}

}  // namespace karst::cli
