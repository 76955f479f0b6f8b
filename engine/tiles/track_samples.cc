// SPDX-License-Identifier: MIT
// What samples have seen below a thread's calls: a lane for each level, which is one of the thread's own levels. A
// slice's function is a place in `sampled_functions` of api/trace, its row the number of samples; 0: it is a wait.
#include <vector>

#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

class SampleTracks final : public TrackKind {
 public:
  std::string_view name() const override { return "samples"; }
  bool of_threads() const override { return true; }
  std::uint32_t count(const TraceIndex& index) const override {
    return index.trace().samples().empty() ? 0 : static_cast<std::uint32_t>(index.threads().size());
  }
  std::optional<TrackFacts> facts(const TraceIndex& index, std::uint32_t number) const override {
    const ThreadIndex& thread = index.threads()[number];
    if (thread.of_samples == nullptr) return std::nullopt;
    return TrackFacts{"samples of " + thread.thread->name, number,
                      static_cast<std::uint32_t>(thread.of_samples->lanes.depths())};
  }
  void draw(const TraceIndex& index, std::uint32_t number, const TrackLanes& wanted, const FilteredLanes* filtered,
            TileWriter& tiles) const override {
    if (filtered != nullptr) return;
    draw_strip(*index.threads()[number].of_samples, wanted, tiles);
  }
};

}  // namespace

const TrackKind& sample_tracks() {
  static const SampleTracks kKind;
  return kKind;
}

void draw_strip(const Strip& strip, const TrackLanes& wanted, TileWriter& tiles) {
  std::vector<Slice> slices;
  for (std::uint64_t depth = wanted.first; depth < strip.lanes.depths() && depth <= wanted.last; ++depth) {
    slices.clear();
    strip.lanes.draw(strip.calls, static_cast<std::uint32_t>(depth), tiles.picture(), slices);
    for (const Slice& slice : slices)
      tiles.add(strip.calls, slice, strip.calls.function[slice.row], strip.source[slice.row]);
    tiles.end_lane(wanted.track, static_cast<std::uint32_t>(depth));
    if (tiles.full()) return;
  }
}

}  // namespace karst::engine
