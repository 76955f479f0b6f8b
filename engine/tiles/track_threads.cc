// SPDX-License-Identifier: MIT
// Threads: a lane for each depth of calls. A slice is a call.
#include <algorithm>
#include <vector>

#include "engine/tiles/tiles.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

class ThreadTracks final : public TrackKind {
 public:
  std::string_view name() const override { return "thread"; }
  bool of_threads() const override { return true; }
  std::uint32_t count(const TraceIndex& index) const override {
    return static_cast<std::uint32_t>(index.threads().size());
  }
  std::optional<TrackFacts> facts(const TraceIndex& index, std::uint32_t number) const override {
    const ThreadIndex& thread = index.threads()[number];
    return TrackFacts{thread.thread->name, number, static_cast<std::uint32_t>(thread.lanes.depths())};
  }
  void draw(const TraceIndex& index, std::uint32_t number, const TrackLanes& wanted, const FilteredLanes* filtered,
            TileWriter& tiles) const override {
    const ThreadIndex& thread = index.threads()[number];
    const Lanes& lanes = filtered == nullptr ? thread.lanes : filtered->threads[number];
    std::vector<Slice> slices;
    for (std::uint64_t depth = wanted.first; depth < lanes.depths() && depth <= wanted.last; ++depth) {
      slices.clear();
      lanes.draw(thread.calls, static_cast<std::uint32_t>(depth), tiles.picture(), slices);
      for (const Slice& slice : slices) tiles.add(thread.calls, slice, index.function_of(thread, slice.row), slice.row);
      tiles.end_lane(wanted.track, static_cast<std::uint32_t>(depth));
      if (tiles.full()) return;
    }
  }
};

}  // namespace

const TrackKind& thread_tracks() {
  static const ThreadTracks kKind;
  return kKind;
}

}  // namespace karst::engine
