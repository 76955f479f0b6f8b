// SPDX-License-Identifier: MIT
// The prompt of `karst query`, for a person at a terminal.
#pragma once
#include "cli/commands/query_print.h"
#include "cli/input/database.h"
#include "sql/database.h"

namespace karst::cli {

/// Asks for statements and prints their answers until the person ends it; returns the exit status. Ctrl+C drops what
/// is typed, or ends the query that runs.
int run_query_prompt(sql::Database& database, const PrintOptions& options, const Inputs& inputs);

}  // namespace karst::cli
