// SPDX-License-Identifier: MIT
// Answers from traces on this machine: the loader's, the api's, and what a process of its own makes of SQL.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/index/preview.h"
#include "engine/server/asked_program.h"
#include "engine/server/source.h"

namespace karst::engine {

struct LocalOptions {
  std::vector<std::filesystem::path> files;  ///< one or two traces
  std::string version;
  bool keep = false;  ///< what the page is told: its server goes on when it is closed
  Preview::Limits preview = {};
  /// So many events of a file that grows are read again while a page follows; twice as many at most.
  std::uint64_t newest_events = 8'000'000;
  /// The program that answers what is asked in SQL (cli/commands/asked.cc); empty: nothing does.
  std::filesystem::path asked = {};
  AskedLimits asked_limits = {};
  /// Number of the first generation (generations.h); a page that has met another source must not take one for another.
  std::uint64_t first_generation = 1;
};

/// Begins to index. Error: the system gives no thread.
Result<std::unique_ptr<Source>> local_source(LocalOptions options);

}  // namespace karst::engine
