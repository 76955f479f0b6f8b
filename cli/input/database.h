// SPDX-License-Identifier: MIT
// Traces as a database that commands ask in SQL.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/input/trace_input.h"
#include "sql/api.h"
#include "sql/database.h"

namespace karst::cli {

using Inputs = std::vector<std::unique_ptr<Input>>;

/// The traces of these files; none: the newest one here. `raw` as InputOptions has it.
Result<Inputs> open_traces(const std::vector<std::string>& named, bool raw);

/// DuckDB's functions. Error: it is not installed, and what installs it.
Result<const sql::duckdb::Api*> find_duckdb();
/// What a query may use where nothing else is said, bytes: half of the machine's.
std::uint64_t usual_query_memory();

/// Of all of them together. `inputs` outlive it. Error: also where DuckDB is not installed.
Result<std::unique_ptr<sql::Database>> open_database(const Inputs& inputs, sql::DatabaseOptions options);

}  // namespace karst::cli
