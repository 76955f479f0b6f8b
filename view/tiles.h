// The binary answers of docs/viewer-protocol.md.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "view/index.h"
#include "view/lanes.h"

namespace karst::view {

/// Some depths of a thread.
struct ThreadRows {
  std::uint32_t thread = 0;  ///< or its strip of states, or a CPU: see kStatesOfThread
  std::uint32_t first_depth = 0;
  std::uint32_t last_depth = std::numeric_limits<std::uint32_t>::max();  ///< included
};

/// The calls of some functions alone, in lanes of their own: what a highlight draws.
struct FilteredLanes {
  std::vector<Lanes> threads;  ///< by thread of the index
};
/// Worth nothing when `work` was stopped.
FilteredLanes filter_lanes(const TraceIndex& index, const std::vector<std::uint32_t>& functions, Work* work = nullptr);

/// Slices an answer may have.
inline constexpr std::size_t kMaxSlices = std::size_t{4} << 20U;

/// api/tiles. `begin` and `end` in ns. Error: more than kMaxSlices.
Result<std::string> encode_tiles(const TraceIndex& index, const std::vector<ThreadRows>& rows, double begin, double end,
                                 std::uint32_t width, const FilteredLanes* filtered = nullptr);

/// api/minimap.
std::string encode_minimap(const TraceIndex& index, const std::vector<std::uint32_t>& threads, std::uint32_t width);

}  // namespace karst::view
