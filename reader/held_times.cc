// SPDX-License-Identifier: MIT
// One walk over the rows with the open calls on a stack. What is behind them: the latest time so far, in the order in
// which the events came.
#include "reader/held_times.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace karst::reader {
namespace {

constexpr std::uint64_t kLatest = std::numeric_limits<std::uint64_t>::max();

struct Open {
  std::uint32_t row;
  std::uint64_t end;
};

}  // namespace

void hold_times(Calls& calls) {
  std::vector<Open> stack;
  std::uint64_t last = calls.first_ticks;
  const auto pop = [&] {
    const Open open = stack.back();
    stack.pop_back();
    last = std::max(last, open.end);
    calls.duration[open.row] = last - calls.begin[open.row];
  };
  for (std::size_t row = 0; row < calls.size(); ++row) {
    while (!stack.empty() && stack.back().row != calls.parent[row]) pop();
    const std::uint64_t begin = calls.begin[row];
    const std::uint64_t end = begin + std::min(calls.duration[row], kLatest - begin);
    last = std::max(last, begin);
    calls.begin[row] = last;
    stack.push_back({static_cast<std::uint32_t>(row), end});
  }
  while (!stack.empty()) pop();
  std::uint64_t noted = calls.first_ticks;
  for (Note& note : calls.notes) {
    noted = std::max(noted, note.ticks);
    if (note.row != kNoParent) noted = std::max(noted, calls.begin[note.row]);
    note.ticks = noted;
  }
}

bool times_in_order(std::span<const std::uint64_t> begin, std::span<const std::uint64_t> duration,
                    std::span<const std::uint32_t> parent) {
  std::vector<Open> stack;
  std::uint64_t last = 0;
  const auto pop = [&] {
    const std::uint64_t end = stack.back().end;
    stack.pop_back();
    if (end < last) return false;  // it does not enclose its callees
    last = end;
    return true;
  };
  for (std::size_t row = 0; row < begin.size(); ++row) {
    if (parent[row] != kNoParent && parent[row] >= row) return false;
    while (!stack.empty() && stack.back().row != parent[row])
      if (!pop()) return false;
    if (stack.empty() && parent[row] != kNoParent) return false;  // its parent had ended
    if (begin[row] < last || duration[row] > kLatest - begin[row]) return false;
    last = begin[row];
    stack.push_back({static_cast<std::uint32_t>(row), begin[row] + duration[row]});
  }
  while (!stack.empty())
    if (!pop()) return false;
  return true;
}

}  // namespace karst::reader
