// SPDX-License-Identifier: MIT
#include "cli/input/chosen_functions.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>

#include "base/suggestion.h"
#include "cli/input/trace_input.h"

namespace karst::cli {

Result<std::vector<std::uint32_t>> functions_meant(const collect::Attached& target,
                                                   const choice::FunctionFilter& filter) {
  const reader::Process named = collect::with_names(target.arena, collect::resolve_options(target));
  std::vector<std::uint32_t> found = collect::matching_functions(named, filter);
  if (!found.empty()) return found;
  const std::vector<std::string>& patterns = filter.only();
  std::string words = "no function of process " + std::to_string(target.process.pid) + " has a name that matches";
  for (const std::string& pattern : patterns) words += (&pattern == &patterns[0] ? " '" : " or '") + pattern + "'";
  if (patterns.empty()) words += " all of the options";
  return Error{words + filter.complaint() +
               (patterns.size() == 1 ? did_you_mean(patterns[0], function_words_of({&named, 1})) : "")};
}

std::vector<std::uint32_t> leave_out_others(collect::Requester& requester, const collect::Attached& target,
                                            const std::vector<std::uint32_t>& chosen) {
  std::vector<std::uint32_t> all(target.arena.function_count());
  std::iota(all.begin(), all.end(), 1U);
  std::vector<std::uint32_t> others;
  std::set_difference(all.begin(), all.end(), chosen.begin(), chosen.end(), std::back_inserter(others));
  requester.set_new_functions(false);
  return requester.choose(others, false);
}

}  // namespace karst::cli
