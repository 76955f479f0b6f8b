// SPDX-License-Identifier: MIT
// CPUs: lane 0 is which thread ran there (a slice's function is a place in States::tasks), lane 1 which function (its
// row is the thread): the innermost traced call at the middle of each pixel.
#include <algorithm>
#include <vector>

#include "engine/tiles/tracks.h"

namespace karst::engine {
namespace {

// Of one stretch that a thread ran: a slice for each run of pixels with the same function.
void add_functions(const TraceIndex& index, std::uint32_t number, std::uint64_t first, std::uint64_t last,
                   TileWriter& tiles) {
  const ThreadIndex& thread = index.threads()[number];
  const double step = 1 / tiles.picture().scale();
  std::uint32_t function = kNoFunction;
  std::uint64_t from = first;
  const auto flush = [&](std::uint64_t to) {
    if (function != kNoFunction && to > from) tiles.add(from, to, function, number);
    from = to;
  };
  for (std::uint64_t i = 0;; ++i) {
    const std::uint64_t at = first + static_cast<std::uint64_t>(static_cast<double>(i) * step);
    if (at >= last || i > 2 * kMaxWidth) break;
    const std::uint32_t row = innermost_at(thread.calls, std::min(at + static_cast<std::uint64_t>(step / 2), last - 1));
    const std::uint32_t now = row == reader::kNoParent ? kNoFunction : index.function_of(thread, row);
    if (now == function) continue;
    flush(at);
    function = now;
  }
  flush(last);
}

class CpuTracks final : public TrackKind {
 public:
  std::string_view name() const override { return "cpu"; }
  bool of_threads() const override { return false; }
  std::uint32_t count(const TraceIndex& index) const override {
    return static_cast<std::uint32_t>(index.trace().states().cpus().size());
  }
  std::optional<TrackFacts> facts(const TraceIndex& index, std::uint32_t number) const override {
    if (number >= index.cpus().size()) return std::nullopt;  // which function ran there is known when all is read
    return TrackFacts{"CPU " + std::to_string(index.trace().states().cpus()[number].cpu), number, kCpuFunction + 1};
  }
  void draw(const TraceIndex& index, std::uint32_t number, const TrackLanes& wanted, const FilteredLanes* filtered,
            TileWriter& tiles) const override {
    const Strip& strip = index.cpus()[number];
    if (filtered != nullptr || strip.lanes.depths() == 0) return;
    std::vector<Slice> stretches;
    strip.lanes.draw(strip.calls, kCpuThread, tiles.picture(), stretches);
    if (wanted.first <= kCpuThread) {
      for (const Slice& slice : stretches)
        tiles.add(strip.calls, slice, strip.calls.function[slice.row], strip.source[slice.row]);
      tiles.end_lane(wanted.track, kCpuThread);
    }
    if (wanted.first > kCpuFunction || wanted.last < kCpuFunction) return;
    const Picture& picture = tiles.picture();
    for (const Slice& slice : stretches) {
      const std::int64_t thread = index.thread_of_task(strip.calls.function[slice.row]);
      // A stretch shorter than a pixel is not looked into.
      if (slice.count != 1 || thread < 0 || !picture.wide(strip.calls.duration[slice.row])) continue;
      add_functions(index, static_cast<std::uint32_t>(thread),
                    std::max(strip.calls.begin[slice.row], picture.first_tick()),
                    std::min(strip.calls.end(slice.row), picture.end_tick()), tiles);
    }
    tiles.end_lane(wanted.track, kCpuFunction);
  }
};

}  // namespace

const TrackKind& cpu_tracks() {
  static const CpuTracks kKind;
  return kKind;
}

}  // namespace karst::engine
