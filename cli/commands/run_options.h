// SPDX-License-Identifier: MIT
// The command line of `karst run`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/commands/count.h"
#include "cli/commands/every_call.h"
#include "cli/input/program_options.h"
#include "cli/input/states.h"
#include "cli/input/system.h"

namespace karst::cli {

struct RunOptions {
  std::string output;
  std::vector<std::string> probes;
  std::string fail_overhead;  // empty: not asked for
  std::string live;           // empty: not asked for
  bool view = false;
  bool exec = false;
  std::string fibers;      // empty: not asked for
  std::string coroutines;  // the same
  std::vector<std::string> plugins;
  bool no_source = false;
  EveryCallOptions all;
  std::optional<std::uint32_t> sample;  // a second; none: as karst thinks best
  StateArguments states;
  SystemArguments system;
  std::vector<std::string> triggers;
  bool multi = false;
  std::string last = "200ms";
  CountOptions counting;
  ProgramOptions program;
};

inline constexpr const char* kFibersOfBoost = "boost";
inline constexpr const char* kAllCoroutines = "all";
inline constexpr const char* kNoCoroutines = "none";

/// What --live is without a file.
inline constexpr const char* kLiveToStderr = "stderr";

/// Declares them, and says what the command is for.
void add_run_options(Command& command, RunOptions& options);
/// Whether what was asked for of the counts, or of the trace, goes with the other. Error: what does not.
Status check_counting(const RunOptions& options, const Command& given);

}  // namespace karst::cli
