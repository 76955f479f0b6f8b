// SPDX-License-Identifier: MIT
#include "cli/input/watch_options.h"

#include <utility>

#include "cli/input/given_options.h"

namespace karst::cli {

namespace {
constexpr std::size_t kMargin = format::option_index("margin");
}

void add_watch_options(Command command, WatchArguments& arguments) {
  add_flag_of(command, format::option_index("slowest"), arguments.slowest);
  add_flag_of(command, format::option_index("over"), arguments.over);
  add_flag_of(command, kMargin, arguments.margin);
}

Result<collect::WatchOptions> watch_options(const WatchArguments& arguments) {
  collect::WatchOptions watch;
  for (const std::string& text : arguments.slowest) {
    auto rule = collect::WatchRule::slowest(text);
    if (!rule) return Error{"--slowest: " + rule.error().message};
    watch.rules.push_back(std::move(*rule));
  }
  for (const std::string& text : arguments.over) {
    auto rule = collect::WatchRule::over(text);
    if (!rule) return Error{"--over: " + rule.error().message};
    watch.rules.push_back(std::move(*rule));
  }
  if (watch.rules.size() > format::kWatchRules)
    return Error{"--slowest, --over: there may be " + std::to_string(format::kWatchRules) + " of them"};
  for (const std::string& margin : arguments.margin) {
    if (const Status right = check_flag(kMargin, margin); !right) return right.error();
    format::parse_duration(margin.c_str(), watch.margin_ns);
  }
  return watch;
}

}  // namespace karst::cli
