// SPDX-License-Identifier: MIT
// What threads did beside their calls: a lane for each sort of state, so that what is summed in a pixel is a share of
// it. A slice's function is the state (reader::ThreadState), its row the state's number for api/state.
#include <vector>

#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

class StateTracks final : public TrackKind {
 public:
  std::string_view name() const override { return "states"; }
  bool of_threads() const override { return true; }
  std::uint32_t count(const TraceIndex& index) const override {
    return index.trace().states().empty() ? 0 : static_cast<std::uint32_t>(index.threads().size());
  }
  std::optional<TrackFacts> facts(const TraceIndex& index, std::uint32_t number) const override {
    const ThreadIndex& thread = index.threads()[number];
    if (thread.states == nullptr) return std::nullopt;
    return TrackFacts{"states of " + thread.thread->name, number, kStripUnknown + 1};
  }
  void draw(const TraceIndex& index, std::uint32_t number, const TrackLanes& wanted, const FilteredLanes* filtered,
            TileWriter& tiles) const override {
    if (filtered != nullptr) return;
    draw_strip(index.threads()[number].strip(), wanted, tiles);
  }
};

}  // namespace

const TrackKind& state_tracks() {
  static const StateTracks kKind;
  return kKind;
}

}  // namespace karst::engine
