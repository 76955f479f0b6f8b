// SPDX-License-Identifier: MIT
// The binary answers of docs/viewer-protocol.md.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/index/index.h"
#include "engine/index/lanes.h"
#include "engine/tiles/tracks.h"

namespace karst::engine {

/// The calls of some functions alone, in lanes of their own: what a highlight draws.
struct FilteredLanes {
  std::vector<Lanes> threads;  ///< by thread of the index
};
/// Worth nothing when `work` was stopped.
FilteredLanes filter_lanes(const TraceIndex& index, const std::vector<std::uint32_t>& functions, Work* work = nullptr);

/// api/tiles. Tracks that there are; `begin` and `end` in ns. Error: more than kMaxSlices.
Result<std::string> encode_tiles(const TraceIndex& index, const std::vector<TrackLanes>& wanted, double begin,
                                 double end, std::uint32_t width, const FilteredLanes* filtered = nullptr);

/// api/minimap. `what` other than kAll: the share of that state instead of that within calls.
std::string encode_minimap(const TraceIndex& index, const std::vector<std::uint32_t>& threads, std::uint32_t width,
                           columns::TimeOf what = columns::TimeOf::kAll);

}  // namespace karst::engine
