// SPDX-License-Identifier: MIT
#include "collect/launch/watch_problems.h"

#include <algorithm>
#include <string>

#include "collect/arena/watch.h"

namespace karst::collect {
namespace {

void add_nothing_is_watched(const LaunchOptions& options, std::vector<reader::Problem>& problems) {
  std::string words = "no traced function is one that --slowest or --over watches";
  const auto& rules = options.watch.rules;
  const auto is_of_locks = [](const WatchRule& rule) { return rule.is_of_locks(); };
  const auto records_locks = [](const std::string& path) { return path.find("libkarst-locks.so") != path.npos; };
  if (std::any_of(options.companions.begin(), options.companions.end(), records_locks)) {
    // A wait is known as soon as there is one.
    if (std::all_of(rules.begin(), rules.end(), is_of_locks)) return;
  } else if (std::any_of(rules.begin(), rules.end(), is_of_locks)) {
    words += "; 'lock' means waits for locks, which --system locks records";
  }
  problems.push_back({words});
}

}  // namespace

std::vector<reader::Problem> problems_of_watch(const LaunchOptions& options, std::uint64_t watched,
                                               Processes& processes) {
  std::vector<reader::Problem> problems;
  if (options.watch.rules.empty()) return problems;
  if (watched == 0) add_nothing_is_watched(options, problems);
  WatchLosses all;
  processes.for_each([&all](std::size_t, RecordedProcess& process) {
    const WatchLosses losses = process.history.watch_losses();
    all.functions_refused += losses.functions_refused;
    all.without_candidate += losses.without_candidate;
    all.too_deep += losses.too_deep;
    all.too_many += losses.too_many;
  });
  const auto say = [&problems](std::uint64_t count, const std::string& what) {
    if (count != 0) problems.push_back({std::to_string(count) + " " + what, count});
  };
  say(all.functions_refused, "functions are not watched for slow calls: there are too many, or memory is short");
  say(all.without_candidate, "slow calls were not kept: there were too many at once");
  say(all.too_deep, "calls were not watched: more than 8000 were open in their thread, or memory was short");
  say(all.too_many, "further calls took longer than --over says; see REGEX:TIME:N");
  return problems;
}

}  // namespace karst::collect
