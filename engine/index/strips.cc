// SPDX-License-Identifier: MIT
#include "engine/index/strips.h"

#include <algorithm>

namespace karst::engine {
namespace {

class StripBuilder {
 public:
  void add(std::uint64_t begin, std::uint64_t end, std::uint32_t what, std::uint16_t depth, std::size_t source,
           std::uint8_t marks = 0) {
    if (strip_.owned.size() == reader::kMaxRows) return;
    strip_.owned.function.push_back(what);
    strip_.owned.begin.push_back(begin);
    strip_.owned.duration.push_back(end - begin);
    strip_.owned.parent.push_back(reader::kNoParent);
    strip_.owned.depth.push_back(depth);
    strip_.owned.marks.push_back(marks);
    strip_.source.push_back(static_cast<std::uint32_t>(source));
  }
  Strip finish() {
    strip_.calls = CallColumns(strip_.owned);
    strip_.lanes.build(strip_.calls);
    return std::move(strip_);
  }

 private:
  Strip strip_;
};

std::uint16_t depth_of(reader::ThreadState state) {
  switch (state) {
    case reader::ThreadState::kRunning:
      return kStripRunning;
    case reader::ThreadState::kPreempted:
    case reader::ThreadState::kWoken:
      return kStripRunnable;
    case reader::ThreadState::kBlocked:
      return kStripBlocked;
    case reader::ThreadState::kUnknown:
    case reader::ThreadState::kGone:
      break;
  }
  return kStripUnknown;
}

}  // namespace

std::pair<std::size_t, std::size_t> Strip::rows_in(std::uint64_t begin, std::uint64_t end) const {
  auto from = std::upper_bound(calls.begin.begin(), calls.begin.end(), begin);
  if (from != calls.begin.begin() && calls.end(static_cast<std::size_t>(from - calls.begin.begin()) - 1) > begin)
    --from;
  const auto to = std::lower_bound(from, calls.begin.end(), end);
  return {static_cast<std::size_t>(from - calls.begin.begin()), static_cast<std::size_t>(to - calls.begin.begin())};
}

Strip make_strip(const reader::ThreadStates& states) {
  StripBuilder builder;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const reader::ThreadState state = states.state[i];
    if (state == reader::ThreadState::kGone) continue;
    builder.add(states.begin[i], states.end_of(i), static_cast<std::uint32_t>(state), depth_of(state), i);
  }
  return builder.finish();
}

Strip make_strip(const reader::CpuLane& lane, std::uint64_t end) {
  StripBuilder builder;
  for (std::size_t i = 0; i < lane.begin.size(); ++i) {
    const std::uint32_t task = lane.task[i];
    if (task == reader::kIdleTask || task == reader::kNoTask) continue;
    const std::uint64_t until = i + 1 < lane.begin.size() ? lane.begin[i + 1] : end;
    // Others of whom nothing was recorded may have followed it.
    const std::uint8_t marks = lane.mixed[i] != 0 ? reader::kCallOpenEnd : 0;
    if (until > lane.begin[i]) builder.add(lane.begin[i], until, task, kCpuThread, i, marks);
  }
  return builder.finish();
}

}  // namespace karst::engine
