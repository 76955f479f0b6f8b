// SPDX-License-Identifier: MIT
// The two forms that are a directory with a file for each table.
#include "export/tables.h"

#include <utility>

#include "answers/data.h"
#include "base/new_directory.h"
#include "base/output.h"
#include "sql/database.h"
#include "sql/gathered.h"
#include "sql/tables.h"

namespace karst::exporting {
namespace {

Status write_csv(sql::Gathered& gathered, const sql::Table& table, const Descriptor& directory) {
  auto output = Output::create_in(directory, table.relation->name + ".csv");
  if (!output) return output.error();
  answers::Csv csv(gathered.source().trace, *table.relation, *output);
  sql::each_row(table, gathered, [&](const void* row) {
    csv.row(row);
    return !output->failed();
  });
  return output->finish();
}

}  // namespace

Status export_csv(const sql::Source& source, const std::filesystem::path& path) {
  auto directory = NewDirectory::create(path);
  if (!directory) return directory.error();
  sql::Gathered gathered(source);
  gathered.by_the_way(sql::tables());
  for (const sql::Table& table : sql::tables())
    if (Status written = write_csv(gathered, table, directory->descriptor()); !written) return written;
  return directory->finish();
}

Status export_parquet(const sql::duckdb::Api& api, const sql::Source& source, std::uint64_t memory,
                      const std::filesystem::path& path) {
  auto directory = NewDirectory::create(path);
  if (!directory) return directory.error();
  sql::DatabaseOptions options;
  options.only_directory = directory->path();
  options.memory = memory;
  const auto database = sql::Database::open(api, {source}, options);
  if (!database) return database.error();
  if (Status written = (*database)->write_all_parquet(); !written) return written;
  return directory->finish();
}

}  // namespace karst::exporting
