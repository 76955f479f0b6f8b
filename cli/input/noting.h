// SPDX-License-Identifier: MIT
// --args and --returns: which values are noted, as `karst run`, `karst on` and `karst attach` have them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "collect/live/noted_values.h"

namespace karst::cli {

struct ValueArguments {
  std::vector<std::string> arguments;
  std::vector<std::string> returned;
};

/// `values` must live until the command line was parsed.
void add_value_options(Command command, ValueArguments& values);

/// Has a process that runs note these values, and says so. `time_ns`: for how long, if the caller ends it; else 0.
/// Error: nothing is noted, and why.
Result<collect::NotingBegun> begin_noting(collect::Attached& target, const choice::ValueChoice& choice,
                                          std::uint64_t time_ns);
/// The values of these functions, or of all if there are none, are not noted any more. Returns an exit status.
int end_noting(collect::Attached& target, const std::vector<std::uint64_t>& functions);

}  // namespace karst::cli
