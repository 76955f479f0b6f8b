// Locks: lanes of those who had it, below them lanes of those who waited. A slice's function is a thread.
#include <algorithm>
#include <vector>

#include "engine/tiles/lock_tracks.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

class LockTrackKind final : public TrackKind {
 public:
  std::string_view name() const override { return "lock"; }
  bool of_threads() const override { return false; }
  std::uint32_t count(const TraceIndex& /*index*/) const override {
    return kMaxLockTracks;  // ids behind them stay the same when they come
  }
  std::optional<TrackFacts> facts(const TraceIndex& index, std::uint32_t number) const override {
    const auto locks = index.locks();
    if (locks == nullptr || number >= locks->tracks.size()) return std::nullopt;
    const LockTrack& track = locks->tracks[number];
    return TrackFacts{"lock", number, std::uint32_t{track.holder_lanes} + track.wait_lanes};
  }
  void draw(const TraceIndex& index, std::uint32_t number, const TrackLanes& wanted, const FilteredLanes* filtered,
            TileWriter& tiles) const override {
    const auto locks = index.locks();
    if (filtered != nullptr || locks == nullptr) return;
    draw_strip(locks->tracks[number].strip, wanted, tiles);
  }
};

struct Span {
  std::uint64_t begin, end;
  std::uint32_t thread, source;
  std::uint16_t lane;
  std::uint8_t marks;
};

}  // namespace

const TrackKind& lock_tracks() {
  static const LockTrackKind kKind;
  return kKind;
}

const LockTracks::Place* LockTracks::find(std::uint32_t thread, std::uint32_t row) const {
  const auto at = std::lower_bound(places.begin(), places.end(), Place{thread, row, 0, 0});
  return at != places.end() && at->thread == thread && at->row == row ? &*at : nullptr;
}

LockTrack make_lock_track(analysis::LockRow row, const LockTracks& of,
                          const std::map<const reader::Thread*, std::uint32_t>& threads, std::uint32_t unknown) {
  const auto number = [&](const reader::Thread* thread) {
    const auto at = threads.find(thread);
    return at == threads.end() ? unknown : at->second;
  };
  using Times = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  LockTrack track;
  Times held, waited;
  for (const analysis::LockHolder& holder : row.holders) held.emplace_back(holder.begin, holder.end);
  for (const std::size_t wait : row.waits)
    waited.emplace_back(of.waits[wait].begin, of.waits[wait].begin + of.waits[wait].duration);
  track.holder_lane = analysis::lanes_of(held, kMaxHolderLanes);
  track.wait_lane = analysis::lanes_of(waited, kMaxWaitLanes);
  const auto lanes = [&](const std::vector<std::uint16_t>& all) {
    std::uint16_t most = 0;
    for (const std::uint16_t lane : all) {
      if (lane == analysis::kNoLane)
        ++track.left_out;
      else
        most = std::max<std::uint16_t>(most, lane + 1);
    }
    return most;
  };
  track.holder_lanes = std::max<std::uint16_t>(1, lanes(track.holder_lane));
  track.wait_lanes = lanes(track.wait_lane);

  std::vector<Span> spans;
  spans.reserve(held.size() + waited.size());
  for (std::size_t i = 0; i < held.size(); ++i) {
    const analysis::LockHolder& holder = row.holders[i];
    if (track.holder_lane[i] == analysis::kNoLane) continue;
    // What only waits tell, and what nobody let go, may have ended earlier or later.
    const bool known = holder.hold != analysis::LockHolder::kNone &&
                       (of.holds.holds[holder.hold].ended == analysis::HoldEnd::kReleased ||
                        of.holds.holds[holder.hold].ended == analysis::HoldEnd::kReleasedByOther);
    spans.push_back({held[i].first, held[i].second, number(holder.thread), static_cast<std::uint32_t>(i),
                     track.holder_lane[i], known ? std::uint8_t{0} : std::uint8_t{reader::kCallOpenEnd}});
  }
  for (std::size_t i = 0; i < waited.size(); ++i) {
    const analysis::LockWait& wait = of.waits[row.waits[i]];
    if (track.wait_lane[i] == analysis::kNoLane) continue;
    spans.push_back({waited[i].first, waited[i].second, number(wait.thread), wait.row,
                     static_cast<std::uint16_t>(track.holder_lanes + track.wait_lane[i]),
                     wait.open ? std::uint8_t{reader::kCallOpenEnd} : std::uint8_t{0}});
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  if (spans.size() > reader::kMaxRows) spans.resize(reader::kMaxRows);
  for (const Span& span : spans) {
    track.strip.owned.function.push_back(span.thread);
    track.strip.owned.begin.push_back(span.begin);
    track.strip.owned.duration.push_back(span.end - span.begin);
    track.strip.owned.parent.push_back(reader::kNoParent);
    track.strip.owned.depth.push_back(span.lane);
    track.strip.owned.marks.push_back(span.marks);
    track.strip.source.push_back(span.source);
  }
  track.strip.calls = CallColumns(track.strip.owned);
  track.strip.lanes.build(track.strip.calls);
  track.row = std::move(row);
  return track;
}

}  // namespace karst::engine
