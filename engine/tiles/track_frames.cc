// Frames: one lane, as those of a name follow one another. A slice's row is the frame's number; its function means
// nothing.
#include <string>
#include <vector>

#include "engine/tiles/frame_tracks.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

class FrameTrackKind final : public TrackKind {
 public:
  std::string_view name() const override { return "frame"; }
  bool of_threads() const override { return false; }
  std::uint32_t count(const TraceIndex& index) const override {
    const auto frames = index.frames();
    return frames == nullptr ? 0 : static_cast<std::uint32_t>(frames->tracks.size());
  }
  std::optional<TrackFacts> facts(const TraceIndex& index, std::uint32_t number) const override {
    const auto frames = index.frames();
    if (frames == nullptr) return std::nullopt;
    return TrackFacts{frames->tracks[number].name, number, 1};
  }
  void draw(const TraceIndex& index, std::uint32_t number, const TrackLanes& wanted, const FilteredLanes* filtered,
            TileWriter& tiles) const override {
    const auto frames = index.frames();
    if (filtered != nullptr || frames == nullptr) return;
    draw_strip(frames->tracks[number].strip, wanted, tiles);
  }
};

Strip strip_of(const std::vector<analysis::RequestWork>& frames, bool first_is_marked) {
  Strip strip;
  for (const analysis::RequestWork& frame : frames) {
    if (strip.source.size() == reader::kMaxRows) break;
    strip.owned.function.push_back(0);
    strip.owned.begin.push_back(frame.range.begin);
    strip.owned.duration.push_back(frame.range.end - frame.range.begin);
    strip.owned.parent.push_back(reader::kNoParent);
    strip.owned.depth.push_back(0);
    strip.owned.marks.push_back(frame.id == 1 && !first_is_marked ? std::uint8_t{reader::kCallOpenBegin}
                                                                  : std::uint8_t{0});
    strip.source.push_back(static_cast<std::uint32_t>(frame.id));
  }
  strip.calls = CallColumns(strip.owned);
  strip.lanes.build(strip.calls);
  return strip;
}

}  // namespace

const TrackKind& frame_tracks() {
  static const FrameTrackKind kKind;
  return kKind;
}

FrameTracks make_frame_tracks(const analysis::Frames& frames) {
  FrameTracks made;
  for (const analysis::Frames::Set& set : frames.sets()) {
    if (made.tracks.size() == kMaxFrameTracks) {
      ++made.more;
      continue;
    }
    made.tracks.push_back({set.process, std::string(set.name), set.function,
                           strip_of(frames.all(set.process, set.name), frames.first_is_marked(set.process, set.name))});
  }
  return made;
}

}  // namespace karst::engine
