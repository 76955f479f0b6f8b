// SPDX-License-Identifier: MIT
// Frames: one lane, as those of a name follow one another. A slice's row is the frame's number; its function means
// nothing.
#include <memory>
#include <string>
#include <vector>

#include "analysis/selection.h"
#include "engine/index/noted_threads.h"
#include "engine/tiles/frame_tracks.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

using answers::field;
using answers::Relation;
using answers::Type;

struct FrameSetRow {
  const FrameTrack& of;
  std::uint32_t id;
};

struct FrameListRow {
  const FrameTracks& of;
  std::uint32_t first;  // track
};

const Relation& frame_sets() {
  using Row = FrameSetRow;
  static const Relation relation{
      "frame_sets",
      "frame_set",
      "A row for each name of frames in a process",
      {field<Row>("track", Type::kNumber, "id of its track", [](const Row& r) { return r.id; }),
       field<Row>("process", Type::kProcess, "that marks them",
                  [](const Row& r) { return answers::ProcessRef{r.of.process}; }),
       field<Row>("name", Type::kText, "what they are called",
                  [](const Row& r) -> const std::string& { return r.of.name; }),
       field<Row>("count", Type::kCount, "how many there are", [](const Row& r) { return r.of.strip.calls.size(); })}};
  return relation;
}

const Relation& frame_lists() {
  using Row = FrameListRow;
  static const Relation relation{
      "frame_lists",
      "frame_list",
      "Names of frames that have a track",
      {field<Row>("more", Type::kCount, "names without a track", [](const Row& r) { return r.of.more; }),
       answers::rows<Row>("frames", "the main ones first", frame_sets(), [](const Row& r, const answers::UseRow& use) {
         std::uint32_t id = r.first;
         for (const FrameTrack& track : r.of.tracks) {
           const FrameSetRow row{track, id++};
           use(&row);
         }
       })}};
  return relation;
}

class FrameTrackKind final : public LateTrackKind<FrameTracks> {
 public:
  std::string_view name() const override { return "frame"; }
  std::uint32_t count(const TraceIndex& index) const override {
    const auto frames = index.made<FrameTracks>();
    return frames == nullptr ? 0 : static_cast<std::uint32_t>(frames->tracks.size());
  }
  std::string_view list_name() const override { return "frames"; }
  const answers::Relation* list() const override { return &frame_lists(); }
  bool use_list(const TraceIndex& index, Work* work, const answers::UseRow& use) const override {
    const auto frames = index.make<FrameTracks>(work);
    if (frames == nullptr) return false;
    const FrameListRow row{*frames, first_track(index, *this)};
    use(&row);
    return true;
  }

 private:
  TrackFacts facts_of(const FrameTracks& made, std::uint32_t number) const override {
    return {made.tracks[number].name, number, 1};
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

std::shared_ptr<const FrameTracks> FrameTracks::make(const TraceIndex& index, Work* work) {
  analysis::Frames frames(analysis::first_ticks(index.trace()));
  for (const ThreadIndex& thread : index.threads()) {
    if (!thread.has_notes(format::NoteKind::kFrame) && !thread.has_notes(format::NoteKind::kFrameBegin)) continue;
    const NotedCalls noted = noted_calls(index, thread, work);
    if (noted.calls == nullptr || !go_on(work, noted.calls->notes.size())) return nullptr;
    frames.add(index.trace(), *thread.thread, *noted.calls);
  }
  auto made = std::make_shared<FrameTracks>();
  for (const analysis::Frames::Set& set : frames.sets()) {
    if (made->tracks.size() == kMaxFrameTracks) {
      ++made->more;
      continue;
    }
    made->tracks.push_back(
        {set.process, std::string(set.name), set.function,
         strip_of(frames.all(set.process, set.name), frames.first_is_marked(set.process, set.name))});
  }
  return made;
}

}  // namespace karst::engine
