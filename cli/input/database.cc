// SPDX-License-Identifier: MIT
#include "cli/input/database.h"

#include <sys/sysinfo.h>

#include <filesystem>
#include <utility>

#include "cli/input/program_options.h"
#include "sql/library.h"

namespace karst::cli {
namespace {

std::vector<sql::Source> sources_of(const Inputs& inputs) {
  std::vector<sql::Source> sources;
  std::uint32_t threads = 0;
  for (const auto& input : inputs) {
    sources.push_back(
        {input->trace, input->threads,
         [of = input.get()](const reader::Thread& thread, reader::Calls& calls) { of->choose(thread, calls); },
         threads});
    threads += static_cast<std::uint32_t>(input->threads.size());
  }
  return sources;
}

}  // namespace

Result<Inputs> open_traces(const std::vector<std::string>& named, bool raw) {
  Inputs inputs;
  std::vector<std::string> files = named;
  if (files.empty()) files.emplace_back();  // the newest
  for (const std::string& file : files) {
    InputOptions of;
    of.file = file;
    of.raw = raw;
    auto input = open_input(of);
    if (!input) return input.error();
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

Result<const sql::duckdb::Api*> find_duckdb() {
  const auto runtime = find_runtime();
  if (!runtime) return runtime.error();
  return sql::load_duckdb(std::filesystem::path(*runtime).parent_path() / "karst-sql");
}

std::uint64_t usual_query_memory() {
  struct sysinfo machine {};
  return ::sysinfo(&machine) == 0 ? std::uint64_t{machine.totalram} * machine.mem_unit / 2 : 0;
}

Result<std::unique_ptr<sql::Database>> open_database(const Inputs& inputs, sql::DatabaseOptions options) {
  const auto api = find_duckdb();
  if (!api) return api.error();
  if (options.memory == 0) options.memory = usual_query_memory();
  return sql::Database::open(**api, sources_of(inputs), options);
}

}  // namespace karst::cli
