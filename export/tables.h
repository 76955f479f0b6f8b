// SPDX-License-Identifier: MIT
// All tables of a trace in a form that other programs ask: those of `karst query` (sql/tables.h), with the same names
// and columns. A table is made of its relation's declaration; nothing here knows one of them.
#pragma once
#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "sql/api.h"
#include "sql/scan.h"

namespace karst::exporting {

// Each writes a place that gets its name when all of it is there. Error: with the path, and nothing is left there.

/// A database of SQLite 3, in one file.
Status export_sqlite(const sql::Source& source, const std::filesystem::path& path);
/// A directory with a file for each table, in the form of `karst calls --format csv`.
Status export_csv(const sql::Source& source, const std::filesystem::path& path);
/// A directory with a file for each table; calls are a directory in it, with a part for each process. `memory`: bytes
/// that DuckDB may use.
Status export_parquet(const sql::duckdb::Api& api, const sql::Source& source, std::uint64_t memory,
                      const std::filesystem::path& path);

}  // namespace karst::exporting
