#include "view/index/sample_strips.h"

#include <algorithm>
#include <utility>

namespace karst::view {
namespace {

/// Levels of one picture; frames below are left out.
constexpr std::size_t kDeepestSample = 4096;

class SampleStripBuilder {
 public:
  explicit SampleStripBuilder(std::uint64_t period) : period_(period) {}

  void add(const analysis::SamplePlace& place, const ThreadIndex& thread) {
    const std::uint64_t ticks = place.sample->ticks;
    const bool in_call = place.row != reader::kNoParent;
    const std::uint32_t level = in_call ? thread.calls.depth[place.row] + 1U : 0;
    const bool follows = ticks - last_ <= period_ + period_ / 2 && row_ == place.row && any_;
    std::uint64_t begin = std::max(ticks - std::min(ticks, period_), any_ ? last_ : 0);
    if (follows) begin = last_;
    if (in_call) begin = std::min(ticks, std::max(begin, thread.calls.begin[place.row]));
    std::size_t shared = 0;
    while (follows && shared < open_.size() && shared < place.below.size() &&
           strip_.owned.function[open_[shared]] == place.below[shared])
      ++shared;
    close(shared, ticks);
    for (; open_.size() < place.below.size() && level + open_.size() < kDeepestSample;)
      open(begin, ticks, place.below[open_.size()], level + open_.size());
    row_ = place.row;
    last_ = ticks;
    any_ = true;
  }

  Strip finish() {
    strip_.calls = CallColumns(strip_.owned);
    strip_.lanes.build(strip_.calls);
    return std::move(strip_);
  }

 private:
  void open(std::uint64_t begin, std::uint64_t end, std::uint32_t function, std::size_t depth) {
    reader::Calls& calls = strip_.owned;
    if (calls.size() == reader::kMaxRows) return;
    open_.push_back(static_cast<std::uint32_t>(calls.size()));
    calls.function.push_back(function);
    calls.begin.push_back(begin);
    calls.duration.push_back(end - begin);
    calls.parent.push_back(reader::kNoParent);
    calls.depth.push_back(static_cast<std::uint16_t>(depth));
    calls.marks.push_back(reader::kCallOpenEnd);
    strip_.source.push_back(1);
  }
  /// The first ones go on until `ticks`; the others have ended.
  void close(std::size_t shared, std::uint64_t ticks) {
    open_.resize(shared);
    for (const std::uint32_t row : open_) {
      strip_.owned.duration[row] = ticks - strip_.owned.begin[row];
      ++strip_.source[row];
    }
  }

  const std::uint64_t period_;
  Strip strip_;
  std::vector<std::uint32_t> open_;  // rows of the strip, outermost first
  std::uint32_t row_ = reader::kNoParent;
  std::uint64_t last_ = 0;
  bool any_ = false;
};

}  // namespace

Strip make_sample_strip(const reader::Trace& trace, const ThreadIndex& thread, analysis::SamplePlaces& places) {
  SampleStripBuilder builder(static_cast<std::uint64_t>(static_cast<double>(trace.samples().source.period_ns) *
                                                        static_cast<double>(trace.clock().ticks_per_second) / 1e9));
  places.each(*thread.thread, thread.calls, thread.first_ticks, [&](const analysis::SamplePlace& place) {
    if (place.has_calls) builder.add(place, thread);
  });
  return builder.finish();
}

}  // namespace karst::view
