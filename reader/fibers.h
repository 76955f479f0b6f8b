// SPDX-License-Identifier: MIT
// Fibers: stacks that a program switches itself, in one thread or in several. Each becomes a lane of its own, which all
// that comes after takes for a thread. What the program said with karst_fiber_enter() (format/note.h, FiberNote):
//
//   thread 1   work() { enter A ... leave }              work() { enter B ... leave }
//   thread 2                            work() { enter A ... leave }
//
// What everybody sees, with calls that the reader makes in brackets:
//
//   thread 1   work [fiber A]                            work [fiber B]
//   thread 2                            work [fiber A]
//   fiber A         parse ....[suspended]....parse
//   fiber B                                                   parse
//
// So a call that a switch interrupted goes on, also in another thread, and the time in which its fiber did not run is
// none of its own. Where a thread's events are lost, a fiber may have run there: calls around it are open at that side.
// A fiber whose calls have all ended, and whose number comes with another name, is another fiber.
//
// Events of threads with fibers are copied; memory is in proportion to their number.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reader/event_stream.h"
#include "reader/model.h"
#include "reader/problems.h"
#include "reader/trace.h"

namespace karst::reader {

/// Lanes of one process. Calls of further fibers are left out.
inline constexpr std::size_t kMostFibers = 1U << 14U;

struct FiberLanes {
  /// By position of the thread: its own blocks; empty where they stay as they are.
  std::vector<std::vector<StoredBlock>> threads;
  /// Of the lanes, which are the process's last threads.
  std::vector<std::vector<StoredBlock>> lanes;
  /// What these lie in.
  std::vector<EventStream> streams;
};

/// Adds lanes, and the functions of the calls that are made, to `process`. `blocks` are those of its threads, by
/// position; `next_tid` is that of the next lane of the trace.
FiberLanes split_fibers(Process& process, std::span<const std::span<const StoredBlock>> blocks, std::uint32_t& next_tid,
                        ProblemList& problems);

}  // namespace karst::reader
