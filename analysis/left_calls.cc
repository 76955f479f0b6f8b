// SPDX-License-Identifier: MIT
#include "analysis/left_calls.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "columns/left.h"
#include "columns/table.h"

namespace karst::analysis {
namespace {

constexpr std::size_t kLeastCalls = 10;
constexpr std::uint64_t kTimes = 3;

}  // namespace

void LeftCallFinder::add(const reader::Thread& thread, const columns::CallColumns& calls) {
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const std::uint8_t marks = calls.marks[row];
    if (!reader::call_is_left(marks) || reader::call_is_open(marks)) continue;
    const std::uint32_t id = calls.function[row];
    if (functions_ != nullptr && !functions_->contains(thread.process, id)) continue;
    const std::uint64_t until = columns::left_until(calls, row);
    if (calls.begin[row] >= range_.end || until <= range_.begin) continue;
    const std::uint64_t behind = until - calls.end(row);
    Sums& of = of_[std::uint64_t{thread.process} << 32 | id];
    if (of.behind.size() == of.behind.capacity())
      of.behind.reserve(of.behind.size() + std::max<std::size_t>(64, of.behind.size() / 2));
    of.behind.push_back(behind);
    if (of.behind.size() != 1 && behind <= of.longest_behind) continue;
    of.longest_behind = behind;
    of.longest = {{&thread, row, calls.time(row) + behind, calls.begin[row], until}, id, id, id, 0};
  }
}

std::vector<LeftFunction> LeftCallFinder::take(std::uint64_t least, std::size_t most) {
  std::vector<LeftFunction> found;
  for (auto& [key, of] : of_) {
    const std::size_t calls = of.behind.size();
    const std::uint64_t usual = calls < kLeastCalls ? 0 : columns::percentile({of.behind.data(), calls}, 50);
    if (of.longest_behind / kTimes < usual || of.longest_behind - usual < std::max<std::uint64_t>(least, 1)) continue;
    of.longest.usual = of.longest.call.duration - (of.longest_behind - usual);
    found.push_back({of.longest, usual, calls});
  }
  of_.clear();
  const auto order = [](const LeftFunction& f) {
    const CallRef& call = f.longest.call;
    return std::tuple(~f.longest.excess(), call.begin, call.thread->tid, call.row);
  };
  std::sort(found.begin(), found.end(),
            [&](const LeftFunction& a, const LeftFunction& b) { return order(a) < order(b); });
  if (found.size() > most) found.resize(most);
  return found;
}

std::uint64_t least_left_excess(const std::vector<OutlierGroup>& groups, std::uint64_t length) {
  constexpr std::uint64_t kOfExcess = 10;
  constexpr std::uint64_t kOfAll = 1000;
  const std::uint64_t least = length / kOfAll;
  return groups.empty() ? least : std::min(least, groups.front().worst.excess() / kOfExcess);
}

}  // namespace karst::analysis
