// SPDX-License-Identifier: MIT
// Where the threads of a trace stand at its end: the calls that each is in.
#pragma once
#include <cstdint>
#include <vector>

#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

/// A call that is open at the end.
struct StandingCall {
  std::uint32_t function = 0;  ///< id in the thread's process
  std::uint64_t begin = 0;     ///< ticks
  bool since_earlier = false;  ///< it began before the kept history: `begin` is the history's
};

struct Standing {
  const reader::Thread* thread = nullptr;
  std::vector<StandingCall> calls;  ///< innermost first
  std::uint64_t last_ticks = 0;     ///< of its last event; 0: it has none
};

/// Of one thread, from its calls. A call whose exit is missing is not open if its caller went on to another one.
Standing standing_of(const reader::Thread& thread, const reader::Calls& calls);

/// Of all threads that had not ended, in the trace's order. Rebuilds the calls of one thread at a time.
std::vector<Standing> standings(const reader::Trace& trace);

}  // namespace karst::analysis
