// SPDX-License-Identifier: MIT
#include "sql/library.h"

#include <dlfcn.h>

#include <string>
#include <string_view>

namespace karst::sql {
namespace {

/// Error: the name of what the library does not have.
Status fill(duckdb::Api& api, void* library) {
#define KARST_DUCKDB_FILL(type, name, parameters)                                     \
  api.name = reinterpret_cast<decltype(api.name)>(::dlsym(library, "duckdb_" #name)); \
  if (api.name == nullptr) return Error{"duckdb_" #name};
  KARST_DUCKDB_FUNCTIONS(KARST_DUCKDB_FILL)
#undef KARST_DUCKDB_FILL
  return Unit{};
}

}  // namespace

Result<const duckdb::Api*> load_duckdb(const std::filesystem::path& directory) {
  static duckdb::Api api;
  static bool is_loaded = false;
  if (is_loaded) return &api;
  const std::filesystem::path beside = directory / "libduckdb.so";
  std::error_code ignored;
  const std::string name = std::filesystem::exists(beside, ignored) ? beside.string() : "libduckdb.so";
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    if (name != "libduckdb.so") return Error{name + " cannot be loaded: " + (why != nullptr ? why : "no reason given")};
    return Error{"queries need DuckDB 1.4, which is not here: install karst-sql, or put libduckdb.so into " +
                 directory.string()};
  }
  if (const Status filled = fill(api, library); !filled)
    return Error{name + " is no DuckDB 1.4: it has no " + filled.error().message};
  const std::string_view version = api.library_version();
  if (!version.starts_with(kDuckdbVersion))
    return Error{name + " is DuckDB " + std::string(version) + ", and 1.4 is needed"};
  is_loaded = true;
  return &api;
}

}  // namespace karst::sql
