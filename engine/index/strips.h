// SPDX-License-Identifier: MIT
// Thread states and CPU lanes as strips of slices, drawn by the same means as calls are: a pyramid over them
// (engine/index/lanes.h), tiles (engine/tiles/tiles.h). docs/viewer-protocol.md says how they are numbered there.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/index/lanes.h"
#include "reader/states.h"
#include "reader/trace.h"

namespace karst::engine {

/// In `calls`, `function` is what a slice is of: a reader::ThreadState, or a place in States::tasks. Row i is state (or
/// stretch) source[i] of the reader's model.
struct Strip {
  CallColumns calls;
  Lanes lanes;
  reader::Column<std::uint32_t> source;

  reader::Calls owned;  ///< what `calls` views

  /// The rows that overlap [begin, end), of a strip whose rows follow one another.
  std::pair<std::size_t, std::size_t> rows_in(std::uint64_t begin, std::uint64_t end) const;
};

/// Depths of a thread's strip, each of other states, so that what is summed in a pixel is a share of it.
enum StripDepth : std::uint16_t { kStripRunning = 0, kStripRunnable = 1, kStripBlocked = 2, kStripUnknown = 3 };
/// Depths of a CPU's strip.
enum CpuDepth : std::uint16_t { kCpuThread = 0, kCpuFunction = 1 };

/// Of a thread that has not ended; kGone is left out.
Strip make_strip(const reader::ThreadStates& states);
/// Of what ran; idle time and what is not known is left out.
Strip make_strip(const reader::CpuLane& lane, std::uint64_t end);

}  // namespace karst::engine
