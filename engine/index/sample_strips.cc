// SPDX-License-Identifier: MIT
#include "engine/index/sample_strips.h"

#include <algorithm>
#include <utility>

namespace karst::engine {
namespace {

/// Levels of one picture; frames below are left out.
constexpr std::size_t kDeepestSample = 4096;

class SampleStripBuilder {
 public:
  explicit SampleStripBuilder(std::uint64_t period) : period_(period) {}

  void add(const analysis::SamplePlace& place, const ThreadIndex& thread) {
    // A sample shows what was before it, a wait's what was until it ended.
    const std::uint64_t seen = place.is_wait ? place.blocked.begin : place.sample->ticks;
    const std::uint64_t ticks = place.is_wait ? place.blocked.end : seen;
    // Nothing is known of a wait's length, or the clocks differ.
    if (ticks <= last_ ? place.is_wait || was_wait_ : place.is_wait && ticks <= seen) return;
    const bool in_call = place.row != reader::kNoParent;
    const std::uint32_t level = in_call ? thread.calls.depth[place.row] + 1U : 0;
    // A wait is a slice of its own, as its ends are known.
    const bool follows =
        any_ && row_ == place.row && seen <= last_ + period_ + period_ / 2 && !place.is_wait && !was_wait_;
    const std::uint64_t since = place.is_wait ? seen : seen - std::min(seen, period_);
    std::uint64_t begin = std::max(since, any_ ? last_ : 0);
    if (follows) begin = last_;
    if (in_call) begin = std::min(ticks, std::max(begin, thread.calls.begin[place.row]));
    std::size_t shared = 0;
    while (follows && shared < open_.size() && shared < place.below.size() &&
           strip_.owned.function[open_[shared]] == place.below[shared])
      ++shared;
    close(shared, ticks, place.is_wait ? 0 : 1);
    for (; open_.size() < place.below.size() && level + open_.size() < kDeepestSample;)
      open(begin, ticks, place.below[open_.size()], level + open_.size(), place.is_wait ? 0 : 1);
    row_ = place.row;
    last_ = ticks;
    was_wait_ = place.is_wait;
    any_ = true;
  }

  Strip finish() {
    strip_.calls = CallColumns(strip_.owned);
    strip_.lanes.build(strip_.calls);
    return std::move(strip_);
  }

 private:
  void open(std::uint64_t begin, std::uint64_t end, std::uint32_t function, std::size_t depth, std::uint32_t samples) {
    reader::Calls& calls = strip_.owned;
    if (calls.size() == reader::kMaxRows) return;
    open_.push_back(static_cast<std::uint32_t>(calls.size()));
    calls.function.push_back(function);
    calls.begin.push_back(begin);
    calls.duration.push_back(end - begin);
    calls.parent.push_back(reader::kNoParent);
    calls.depth.push_back(static_cast<std::uint16_t>(depth));
    calls.marks.push_back(reader::kCallOpenEnd);
    strip_.source.push_back(samples);
  }
  /// The first ones go on until `ticks`; the others have ended.
  void close(std::size_t shared, std::uint64_t ticks, std::uint32_t samples) {
    open_.resize(shared);
    for (const std::uint32_t row : open_) {
      strip_.owned.duration[row] = ticks - strip_.owned.begin[row];
      strip_.source[row] += samples;
    }
  }

  const std::uint64_t period_;
  Strip strip_;
  std::vector<std::uint32_t> open_;  // rows of the strip, outermost first
  std::uint32_t row_ = reader::kNoParent;
  std::uint64_t last_ = 0;
  bool was_wait_ = false;
  bool any_ = false;
};

}  // namespace

Strip make_sample_strip(const reader::Trace& trace, const ThreadIndex& thread, analysis::SamplePlaces& places) {
  SampleStripBuilder builder(analysis::sample_period(trace));
  places.each(*thread.thread, thread.calls, thread.first_ticks, [&](const analysis::SamplePlace& place) {
    if (place.has_calls) builder.add(place, thread);
  });
  return builder.finish();
}

}  // namespace karst::engine
