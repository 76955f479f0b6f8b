// SPDX-License-Identifier: MIT
#include "reader/switches.h"

#include <algorithm>
#include <limits>

namespace karst::reader {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 20;  // of single groups: some ms for each thread

std::uint64_t end_of(const Switch& s) { return std::uint64_t{s.first} + s.count; }

}  // namespace

SwitchTimeline::SwitchTimeline(std::span<const Switch> switches, std::size_t functions) {
  if (switches.empty()) return;
  for (const Switch& s : switches) {
    if (s.first == 0) continue;
    bounds_.push_back(s.first);
    bounds_.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(end_of(s), 0xffffffffU)));
  }
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
  group_of_.resize(functions);
  std::uint32_t group = 0;
  for (std::size_t id = 0; id < functions; ++id) {
    while (group < bounds_.size() && bounds_[group] <= id) ++group;
    group_of_[id] = group;
  }

  std::uint64_t work = 0;
  for (const Switch& s : switches) {
    Range range;
    range.restores = s.on;
    if (s.first != 0) {
      range.first_group = search_group(s.first);
      range.end_group = search_group(static_cast<std::uint32_t>(std::min<std::uint64_t>(end_of(s), 0xffffffffU)));
      if (range.first_group == range.end_group) continue;  // of no function
      work += range.end_group - range.first_group;
      if (work > kMostSteps) {
        range = {0, 0, true};
        ++widened_;
      }
    }
    const auto number = static_cast<std::uint32_t>(ranges_.size());
    ranges_.push_back(range);
    steps_.push_back({s.begin_ticks, number, true});
    // A switch that ends before it begins ends with its begin.
    if (range.restores && s.end_ticks != 0) steps_.push_back({std::max(s.begin_ticks, s.end_ticks), number, false});
  }
  std::stable_sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.ticks < b.ticks; });
}

std::uint32_t SwitchTimeline::search_group(std::uint32_t id) const {
  return static_cast<std::uint32_t>(std::upper_bound(bounds_.begin(), bounds_.end(), id) - bounds_.begin());
}

SwitchCursor::SwitchCursor(const SwitchTimeline& timeline)
    : timeline_(&timeline), next_(timeline.steps_.empty() ? kNever : timeline.steps_[0].ticks) {
  if (!timeline.empty()) groups_.resize(timeline.bounds_.size() + 1);
}

void SwitchCursor::apply(State& state, std::uint32_t range, bool begins, std::uint64_t ticks) {
  if (begins) {
    state.blinded = ticks;
    state.range = range + 1;
    state.visible = false;
  } else if (state.range == range + 1 && !state.visible) {  // no later switch has begun meanwhile
    state.restored = ticks;
    state.visible = true;
  }
}

SwitchCursor::Blinded SwitchCursor::step() {
  const SwitchTimeline::Step step = timeline_->steps_[at_++];
  next_ = at_ < timeline_->steps_.size() ? timeline_->steps_[at_].ticks : kNever;
  const SwitchTimeline::Range& range = timeline_->ranges_[step.range];
  const bool all = range.first_group == range.end_group;
  if (all) {
    apply(all_, step.range, step.begins, step.ticks);
  } else {
    for (std::uint32_t g = range.first_group; g < range.end_group; ++g)
      apply(groups_[g], step.range, step.begins, step.ticks);
  }
  return !step.begins ? Blinded::kNone : all ? Blinded::kAll : Blinded::kSome;
}

}  // namespace karst::reader
