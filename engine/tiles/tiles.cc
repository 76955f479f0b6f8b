// SPDX-License-Identifier: MIT
#include "engine/tiles/tiles.h"

#include <algorithm>

#include "engine/protocol.h"

namespace karst::engine {
FilteredLanes filter_lanes(const TraceIndex& index, const std::vector<std::uint32_t>& functions, Work* work) {
  std::vector<std::uint8_t> wanted(index.functions().functions().size());
  for (const std::uint32_t function : functions) wanted[function] = 1;
  FilteredLanes filtered;
  filtered.threads.resize(index.threads().size());
  for (const ThreadIndex& thread : index.threads()) expect(work, thread.calls.size());
  run_parallel(index.threads().size(), [&](std::size_t i) {
    const ThreadIndex& thread = index.threads()[i];
    if (thread.calls.size() == 0) return;
    const auto& function_of = index.functions().of_process(thread.thread->process);
    std::vector<std::uint32_t> rows;
    for (std::uint32_t row = 0; row < thread.calls.size(); ++row) {
      if (row % kWorkStep == kWorkStep - 1 && !go_on(work, kWorkStep)) return;
      if (wanted[function_of[thread.calls.function[row]]] != 0) rows.push_back(row);
    }
    filtered.threads[i].build(thread.calls, rows);
  });
  return filtered;
}

Result<std::string> encode_tiles(const TraceIndex& index, const std::vector<TrackLanes>& wanted, double begin,
                                 double end, std::uint32_t width, const FilteredLanes* filtered) {
  TileWriter tiles(index, Picture{index.to_ticks(begin), index.to_ticks(end), index.origin(), width});
  for (const TrackLanes& lanes : wanted) {
    const auto track = find_track(index, lanes.track);
    if (track) track->kind->draw(index, track->number, lanes, filtered, tiles);
    if (tiles.full()) {
      return Error{"the answer would have more than " + std::to_string(kMaxSlices) +
                   " slices: ask for fewer tracks or lanes"};
    }
  }
  return tiles.take(begin, end);
}

std::string encode_minimap(const TraceIndex& index, const std::vector<std::uint32_t>& threads, std::uint32_t width,
                           columns::TimeOf what) {
  const MinimapHeader header{kMinimapMagic, kProtocolVersion, static_cast<std::uint32_t>(threads.size()), width};
  std::string out;
  append_column(out, &header, 1);
  const double span = static_cast<double>(index.last_ticks() - index.origin()) + 1;
  const auto border = [&](std::size_t i) {
    return index.origin() + static_cast<std::uint64_t>(span * static_cast<double>(i) / width);
  };
  const std::size_t first = out.size();
  out.resize(first + threads.size() * width);
  run_parallel(threads.size(), [&](std::size_t i) {
    const ThreadIndex& thread = index.threads()[threads[i]];
    for (std::size_t x = 0; x < width; ++x) {
      const std::uint64_t from = border(x);
      const std::uint64_t to = std::max(border(x + 1), from + 1);
      std::uint64_t ticks = 0;
      if (what == columns::TimeOf::kAll) {
        ticks = thread.lanes.covered(thread.calls, from, to);
      } else if (thread.states != nullptr) {
        ticks = columns::part_of(thread.states->between(from, to), what);
      }
      out[first + i * width + x] =
          static_cast<char>(eighth_bits(static_cast<double>(ticks) / static_cast<double>(to - from)));
    }
  });
  return out;
}

}  // namespace karst::engine
