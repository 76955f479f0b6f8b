// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>

#include "base/result.h"
#include "sql/api.h"

namespace karst::cli {

/// The library that comes with Karst, or the system's. Error: there is none, and which package has it.
Result<const sql::duckdb::Api*> find_duckdb();
/// Bytes: half of the machine's memory; 0: not known.
std::uint64_t usual_query_memory();

}  // namespace karst::cli
