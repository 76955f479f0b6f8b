// SPDX-License-Identifier: MIT
// libduckdb.so, which is a package of its own and is loaded for a query alone.
#pragma once
#include <filesystem>

#include "base/result.h"
#include "sql/api.h"

namespace karst::sql {

/// Versions whose names begin so are known to fit sql/api.h.
inline constexpr const char* kDuckdbVersion = "v1.4.";

/// The library beside Karst's own (`directory`/libduckdb.so), or else where the system has its libraries. It stays
/// loaded. Error: there is none, or one of another version. From one thread.
Result<const duckdb::Api*> load_duckdb(const std::filesystem::path& directory);

}  // namespace karst::sql
