// SPDX-License-Identifier: MIT
// Watching for slow calls in a process that runs: what `karst on --slowest`, `--over` and `karst off --watches` do.
#pragma once
#include <cstdint>

#include "collect/arena/watch.h"
#include "collect/launch/attach.h"

namespace karst::cli {

struct WatchStay {
  bool stay = false;  ///< until a signal, or the process's end: functions of libraries that come are watched, too
  std::uint64_t time_ns = 0;  ///< not 0: the same for so long, then what was set is watched no more
};

/// Sets the watches, in the place of earlier ones for the same regular expressions. Functions that are watched are
/// traced, whatever else is. Returns the exit status; says on stderr what became of it.
int begin_watching(collect::Attached& target, const collect::WatchOptions& watch, const WatchStay& stay);

/// Nothing is watched any more; what was kept stays.
int end_watching(collect::Attached& target);

}  // namespace karst::cli
