// SPDX-License-Identifier: MIT
#include "cli/commands/duckdb.h"

#include <sys/sysinfo.h>

#include <filesystem>

#include "cli/input/program_options.h"
#include "sql/library.h"

namespace karst::cli {

Result<const sql::duckdb::Api*> find_duckdb() {
  const auto runtime = find_runtime();
  if (!runtime) return runtime.error();
  return sql::load_duckdb(std::filesystem::path(*runtime).parent_path() / "karst-sql");
}

std::uint64_t usual_query_memory() {
  struct sysinfo machine {};
  return ::sysinfo(&machine) == 0 ? std::uint64_t{machine.totalram} * machine.mem_unit / 2 : 0;
}

}  // namespace karst::cli
