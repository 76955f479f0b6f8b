// SPDX-License-Identifier: MIT
// The maintenance process, one beside each traced process: it applies what is wanted in the control page
// (format/control.h), and does what others of the runtime want done now and then outside of the program's own threads.
//
// It shares the program's memory and is none of its threads (own_process.h). It sleeps on the futex
// ArenaControl::request, so it costs nothing while nobody wants anything. It holds no lock of the program's. Where the
// program changes what its processes may do, or waits for children of any kind, it is taken away meanwhile
// (taken_away.cc); likewise before the program executes another one, and at its end.
#pragma once
#include <cstdint>

#include "format/control.h"

namespace karst::runtime {

struct Moment {
  std::uint64_t ticks;  ///< TSC
  std::uint64_t ns;     ///< CLOCK_MONOTONIC_RAW
};

/// What the maintenance process calls: returns in how many nanoseconds it wants to be called again, kOnWake if only
/// when somebody wakes it. It is called at every wake-up, whoever's that is, and soon after the process has started:
/// also for a forked child, where it runs for the first time with the parent's memory as it was at the fork. It may
/// make system calls and take its time, but holds up requests meanwhile; see own_process.h for what it may not do.
using Task = std::uint64_t (*)(const Moment& now);
inline constexpr std::uint64_t kOnWake = ~std::uint64_t{0};

/// At start, before start_maintenance(). At most 8.
void add_task(Task task);

/// When the arena is there: makes the process, if `control` is on (KARST_OPTIONS control=0) and one can be had.
void start_maintenance(bool control);
/// In a forked child that has got an arena: makes it again if its parent had one.
void renew_maintenance();
bool has_maintenance();

/// Makes it go round now. Async-signal-safe, any thread: one atomic addition to `request` and a system call.
/// Requesters therefore wait until `applied` has passed their own number, not until it is equal.
void wake_maintenance();
/// Lets the tasks be called soon, if nobody wakes it for more. Async-signal-safe, any thread: a system call. It may be
/// lost, where the process is about to sleep.
void nudge_maintenance();

/// Work that needs the program's descriptors and directory: done soon by a thread that ends when nothing is pending.
/// False: none can be had now. The same functions each time. Async-signal-safe.
struct ThreadWork {
  bool (*pending)();
  void (*work)();
};
bool do_in_thread(const ThreadWork& work);

/// No maintenance any more, for good: the program is about to give up what it may do (a seccomp filter is the calling
/// thread's alone, and a process without it would be a way around), or ends.
void end_maintenance();

/// Takes it away while this lives. Nothing is done in a vfork's child. Async-signal-safe.
class MaintenanceAway {
 public:
  MaintenanceAway();
  ~MaintenanceAway();
  MaintenanceAway(const MaintenanceAway&) = delete;
  MaintenanceAway& operator=(const MaintenanceAway&) = delete;

 private:
  bool taken_ = false;
};

}  // namespace karst::runtime
