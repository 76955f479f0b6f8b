// SPDX-License-Identifier: MIT
#include "analysis/standing.h"

#include <algorithm>

namespace karst::analysis {

Standing standing_of(const reader::Thread& thread, const reader::Calls& calls) {
  std::vector<std::uint32_t> open;  // rows, outermost first
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const std::uint32_t parent = calls.parent[row];
    const auto at = std::find(open.rbegin(), open.rend(), parent);
    if (parent != reader::kNoParent && at == open.rend()) continue;  // inside a call that has ended
    open.erase(at.base(), open.end());                               // whatever was open beside this one, or below it
    const std::uint8_t marks = calls.marks[row];
    const bool is_open =
        (marks & reader::kCallOpenEnd) != 0 && (marks & reader::kCallSwitched) == 0 && !reader::call_is_cut(marks);
    if (is_open) open.push_back(row);
  }
  Standing standing{&thread, {}, calls.last_ticks};
  for (auto row = open.rbegin(); row != open.rend(); ++row)
    standing.calls.push_back(
        {calls.function[*row], calls.begin[*row], (calls.marks[*row] & reader::kCallOpenBegin) != 0});
  return standing;
}

std::vector<Standing> standings(const reader::Trace& trace) {
  std::vector<Standing> all;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads)
      if (!thread.exited) all.push_back(standing_of(thread, reader::rebuild_calls(trace, thread)));
  return all;
}

}  // namespace karst::analysis
