#include "cli/watch_options.h"

#include <utility>

#include "format/options.h"

namespace karst::cli {

void add_watch_options(Command command, WatchArguments& arguments) {
  command
      .add_option(
          "--slowest", arguments.slowest,
          "Keep the N (5) slowest calls of each function whose demangled name matches, each with what all\n"
          "threads did meanwhile, however often memory is overwritten; 'lock:5': the waits for locks of --system locks")
      .type_name("REGEX[:N]")
      .allow_extra_args(false);
  command
      .add_option("--over", arguments.over,
                  "Keep each call that takes longer, the first N (100) of each function, at most one in so much time:\n"
                  "'serve.*:20ms', 'serve.*:20ms:50/1s', 'lock:5ms'")
      .type_name("REGEX:TIME[:N[/TIME]]")
      .allow_extra_args(false);
  command.add_option("--margin", arguments.margin, "Keep so much on both sides of such a call, too (default none)")
      .type_name("TIME");
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
  if (!arguments.margin.empty() && !format::parse_duration(arguments.margin.c_str(), watch.margin_ns))
    return Error{"--margin " + arguments.margin + ": a time from 1ns to 10s is needed, like 10ms"};
  return watch;
}

}  // namespace karst::cli
