// SPDX-License-Identifier: MIT
// Several traces' processes in one file. Events go through block by block: memory has names and sources alone, however
// long the traces are.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "reader/trace.h"
#include "write/tick_map.h"
#include "write/trace_writer.h"

namespace karst::writing {

/// A trace, and its times on the clock of the whole.
struct MergePart {
  const reader::Trace* trace;
  TickMap map;
};

/// What the whole has no place for.
struct LeftOut {
  std::vector<const reader::Trace*> states;   ///< whose thread states: a file has those of one machine
  std::vector<const reader::Trace*> samples;  ///< the same of samples
  std::vector<const reader::Trace*> usage;    ///< and of what was used beside the calls
  std::uint64_t sources = 0;                  ///< texts of files of which another part has another text
};

/// Writes all parts, which have their names (Trace::resolved()). The clock is the first one's. The caller finishes
/// `writer`. Error: others wrote to one of the files meanwhile.
Result<LeftOut> write_merged(const std::vector<MergePart>& parts, TraceWriter& writer);

}  // namespace karst::writing
