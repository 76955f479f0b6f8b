// SPDX-License-Identifier: MIT
// The states of one thread: which there is at a moment, and times by prefix sums.
#include <algorithm>

#include "reader/states.h"

namespace karst::reader {

void ThreadStates::sum_up() {
  StateTimes sums;
  const auto reserve = [&](auto&... columns) { (columns.reserve(size()), ...); };
  reserve(running_before, runnable_before, blocked_before);
  for (std::size_t i = 0; i < size(); ++i) {
    running_before.push_back(sums.running);
    runnable_before.push_back(sums.runnable);
    blocked_before.push_back(sums.blocked);
    const std::uint64_t length = end_of(i) - begin[i];
    if (state[i] == ThreadState::kRunning) sums.running += length;
    if (state[i] == ThreadState::kPreempted || state[i] == ThreadState::kWoken) sums.runnable += length;
    if (state[i] == ThreadState::kBlocked) sums.blocked += length;
  }
}

std::size_t ThreadStates::at(std::uint64_t ticks) const {
  if (begin.empty() || ticks < begin[0] || ticks >= end) return size();
  return static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), ticks) - begin.begin()) - 1;
}

StateTimes ThreadStates::before(std::uint64_t ticks, std::size_t& hint) const {
  StateTimes times;
  if (begin.empty() || ticks <= begin[0]) return times;
  const std::uint64_t until = std::min(ticks, end);
  std::size_t i = std::min(hint, size() - 1);
  // Near the hint by steps, else by halves.
  constexpr int kSteps = 8;
  int steps = 0;
  while (steps < kSteps && i + 1 < size() && begin[i + 1] <= until) ++i, ++steps;
  while (steps < kSteps && i != 0 && begin[i] > until) --i, ++steps;
  if (begin[i] > until || (i + 1 < size() && begin[i + 1] <= until))
    i = static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), until) - begin.begin()) - 1;
  hint = i;
  times.running = running_before[i];
  times.runnable = runnable_before[i];
  times.blocked = blocked_before[i];
  const std::uint64_t part = until - begin[i];
  if (state[i] == ThreadState::kRunning) times.running += part;
  if (state[i] == ThreadState::kPreempted || state[i] == ThreadState::kWoken) times.runnable += part;
  if (state[i] == ThreadState::kBlocked) times.blocked += part;
  times.unknown = ticks - begin[0] - times.running - times.runnable - times.blocked;
  return times;
}

std::uint64_t ThreadStates::faults_between(std::uint64_t from, std::uint64_t to) const {
  const auto until = [this](std::uint64_t ticks) {
    const auto at =
        static_cast<std::size_t>(std::lower_bound(fault_at.begin(), fault_at.end(), ticks) - fault_at.begin());
    return at == 0 ? 0 : faults[at - 1];
  };
  return from < to ? until(to) - until(from) : 0;
}

StateTimes ThreadStates::between(std::uint64_t from, std::uint64_t to) const {
  if (to <= from) return {};
  std::size_t hint = size() / 2;
  const StateTimes first = before(from, hint);
  StateTimes times = before(to, hint) - first;
  times.unknown = to - from - times.running - times.runnable - times.blocked;
  return times;
}

}  // namespace karst::reader
