// SPDX-License-Identifier: MIT
// Runs: which fiber a thread worked on from where to where, as its notes say (format/note.h, FiberNote).
//
// A note tells what it leaves and what it enters. So the oldest note behind a gap says whose the events before it are;
// without one they stay the thread's own. Where a note leaves another fiber than the one before it entered, tracing was
// off in between: the events behind the last switch are of the fiber that is left.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reader/model.h"
#include "reader/trace.h"

namespace karst::reader {

/// A word of a thread's blocks, or the place behind the last one of a block.
struct WordPlace {
  std::size_t block = 0;
  std::size_t word = 0;
  bool operator==(const WordPlace&) const = default;
};

struct FiberRun {
  std::uint64_t fiber = 0;  ///< 0: the thread's own stack, or not known
  WordPlace begin;
  WordPlace end;
  std::uint64_t begin_ticks = 0;
  std::uint64_t end_ticks = 0;
  std::size_t name = kNoName;  ///< into FiberRuns::names
  bool entered = false;        ///< a note says that it begins here
  bool left = false;           ///< a note says that it ends here
  bool first = false;          ///< of a stretch without a gap
  bool last = false;

  static constexpr std::size_t kNoName = ~std::size_t{0};
};

/// The runs of one thread, in order. Empty: it has no notes of fibers.
struct FiberRuns {
  std::vector<FiberRun> runs;
  std::vector<std::string> names;
};

/// `switches`: of the thread's process.
FiberRuns find_fiber_runs(std::span<const StoredBlock> blocks, std::span<const Switch> switches);

}  // namespace karst::reader
