// SPDX-License-Identifier: MIT
// --slowest, --over and --margin, as `karst run` and `karst on` have them.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "collect/arena/watch.h"

namespace karst::cli {

struct WatchArguments {
  std::vector<std::string> slowest;
  std::vector<std::string> over;
  std::vector<std::string> margin;  ///< one at most
};

/// `arguments` must live until the command line was parsed.
void add_watch_options(Command command, WatchArguments& arguments);

/// The error names the option.
Result<collect::WatchOptions> watch_options(const WatchArguments& arguments);

}  // namespace karst::cli
