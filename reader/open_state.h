// SPDX-License-Identifier: MIT
// What a thread is inside at some moment: all that the meaning of later events depends on. Whoever writes a part of a
// thread's history as a trace of its own puts this before it (engine/cut/cut.cc).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/model.h"
#include "reader/trace.h"

namespace karst::reader {

struct OpenState {
  struct Call {
    std::uint32_t function = 0;
    std::uint8_t marks = 0;  ///< kCallResumed, kCallInherited and kCallOpenBegin as they were when it began
    std::uint64_t begin = 0;
  };
  /// Where a longjmp may go to.
  struct Place {
    std::uint64_t place = 0;  ///< format::event_place
    std::size_t depth = 0;    ///< calls that were open when it was set
    bool stands = true;       ///< they still are; else a jump there is to another stack
    Call call;                ///< the innermost of them, unless depth is 0
    std::uint64_t end = 0;    ///< of that call, if the place does not stand
  };
  /// A stack that runs on top of the one that switched to it.
  struct Stack {
    std::uint64_t left_at = 0;  ///< place
    std::size_t base = 0;       ///< its own calls begin here
  };
  struct Aside {
    std::uint64_t place = 0;
    std::vector<std::uint32_t> functions;  ///< outermost first
  };

  std::vector<Call> calls;    ///< outermost first; those whose enter is lost are not known yet and not here
  std::vector<Stack> stacks;  ///< outermost first
  std::vector<Place> places;  ///< in order of depth
  std::vector<Aside> aside;   ///< stacks that wait to go on, in order of place
};

/// Of `thread` behind `blocks`: those of one segment of its history (no gap in their sequence), from its begin to the
/// moment. The last one may be a part of a block, that ends in front of an event with a time of its own.
OpenState open_state(const Trace& trace, const Thread& thread, std::span<const StoredBlock> blocks);

}  // namespace karst::reader
