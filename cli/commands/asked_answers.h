// SPDX-License-Identifier: MIT
// Answers of SQL for the page, as docs/viewer-protocol.md has them: api/query, api/check, api/schema.
#pragma once
#include <cstddef>
#include <string>

#include "base/result.h"
#include "cli/input/database.h"

namespace karst::cli {

/// More rows, or bytes of them, are counted and not told: the page shows them all at once.
inline constexpr std::size_t kMostAnswerRows = 5000;
inline constexpr std::size_t kMostAnswerBytes = std::size_t{16} << 20;
/// Longer texts are cut.
inline constexpr std::size_t kMostCellBytes = std::size_t{16} << 10;

/// {"error":"..."}.
std::string error_json(const Error& error);
/// What `sql` answers, in DuckDB's words where it fails.
std::string query_json(const Inputs& input, const std::string& sql);
/// What the detectors find, Karst's own and the user's.
std::string check_json(const Inputs& input);
/// All tables. `missing`: why none can be asked; empty: they can.
std::string schema_json(const std::string& missing);

}  // namespace karst::cli
