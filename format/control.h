// SPDX-License-Identifier: MIT
// The control page of an arena: how `karst on`, `off`, `status` and the like, from outside, and the process's own
// maintenance process (runtime/maintenance/control.cc) speak to each other. No port, no signal: words in shared memory
// and a futex. Who may open the process's memfd (/proc/PID/fd: the same user, and root) may write here.
//
// A requester takes `holder` (its pid; a dead one's may be taken over), changes what is wanted (the words of the first
// group, and kArenaFunctionOn in the functions' flags, by atomic operations on single bits), raises `request` and wakes
// whoever sleeps on it. The maintenance process applies what it finds, patching live code, and stores the `request`
// that it had seen into `applied`, on which the requester sleeps. A requester that dies in the middle leaves a request
// that is applied by the next one, or not at all; nothing waits for it.
//
// What was switched when is kept in a log of its own, as a call that is absent from a trace must not be taken for one
// that did not happen. For each record, in the order of their making:
//   events of the functions are whole before `begin` (if they were on) and from `end` on (if they are on then); those
//   in between, and all until they are switched on again, say nothing and are to be ignored. Calls that are open at
//   the `begin` of a switching off have an unknown end.
#ifndef KARST_FORMAT_CONTROL_H
#define KARST_FORMAT_CONTROL_H

#include <cstdint>

namespace karst::format {

/// The maintenance process's own name, as /proc/PID/comm has it. It has the program's executable and arguments.
inline constexpr const char* kMaintenanceName = "karst-maint";

struct ArenaControl {
  // Wanted: written by requesters.
  std::uint32_t request;        ///< futex; raised by each request
  std::uint32_t holder;         ///< pid of the requester at work; 0: none
  std::uint32_t enabled;        ///< 1: what is chosen is traced; 0: nothing is
  std::uint32_t new_functions;  ///< 1: functions that come later (libraries) are on, 0: off
  std::uint64_t off_at_ticks;   ///< `enabled` becomes 0 then (TSC); 0: never
  std::uint32_t budget_ppm;     ///< share of time that tracing may cost, in millionths; 0: no budget
  std::uint32_t values_wanted;  ///< 1: there shall be tables of values to note (format/values.h)
  // Of who takes all that is recorded (`karst run --all --blocking`).
  std::uint32_t blocking;      ///< 1: blocks that have not been taken are waited for; 0 again if nobody takes any
  std::uint32_t taken;         ///< futex; raised whenever some were (BlockHeader::taken)
  std::uint64_t waited_ticks;  ///< written by the process: of all threads that had to wait, together
  std::uint32_t waits;         ///< the same: raised by each of them as it begins
  std::uint32_t reserved1;

  // State: written by the process.
  std::uint32_t applied;            ///< futex; the last request that is done
  std::uint32_t outcome;            ///< ControlOutcome of it
  std::uint32_t thread;             ///< ControlThread
  std::uint32_t patched_functions;  ///< whose sleds are calls now; those of -finstrument-functions have none
  std::uint64_t patched_sites;
  std::uint64_t switch_count;     ///< records ever made; the log keeps the last `switch_capacity` of them
  std::uint64_t switches_offset;  ///< in the arena
  std::uint32_t switch_capacity;
  std::uint32_t cost_ppm;           ///< estimated share of time that tracing costs now; ~0: not known
  std::uint64_t cost_ticks;         ///< when that was estimated
  std::uint32_t culled_functions;   ///< that the budget keeps out now
  std::uint32_t unpatchable_sites;  ///< that cannot be changed while threads may execute them
  std::uint64_t last_patch_ns;      ///< time that the last change of live code took
  std::uint64_t dropped_messages;   ///< lines of the runtime's that could not be written to stderr
  std::uint32_t given_back;  ///< functions that were not built for tracing, and are off for good (docs/limits.md)
  std::uint32_t reserved2;
};
static_assert(sizeof(ArenaControl) == 144);

enum class ControlThread : std::uint32_t {
  kNone = 0,  ///< control=0, or it could not be made
  kRunning = 1,
  kStopped = 2,  ///< the program asked for what a process with more than one thread cannot have (unshare, setns)
};

enum class ControlOutcome : std::uint32_t {
  kDone = 0,
  kRefused = 1,  ///< the system does not let the code be changed (W^X)
};

/// One change of `count` functions from `first` on. `first` 0: of the process, by `enabled`: nothing is traced between
/// such a switching off and the next such switching on, whatever each function's own switches say; they count again
/// from then on. A function whose first record switches it on was off before; one without a record was as its flags
/// are.
struct ArenaSwitch {
  std::uint64_t begin_ticks;
  std::uint64_t end_ticks;  ///< 0: under way
  std::uint32_t first;
  std::uint32_t count;
  std::uint32_t on;      ///< 1: on from `end_ticks`; 0: off from `begin_ticks`
  std::uint32_t reason;  ///< SwitchReason
};
static_assert(sizeof(ArenaSwitch) == 32);

enum class SwitchReason : std::uint32_t {
  kRequest = 0,  ///< `karst on`, `karst off`, or the program by the API
  kTimer = 1,    ///< off_at_ticks
  kBudget = 2,
};

inline constexpr std::uint32_t kArenaSwitches = 1 << 16;

}  // namespace karst::format
#endif
