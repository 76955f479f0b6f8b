// The maintenance thread, one in a traced process: it applies what is wanted in the control page (format/control.h),
// and does what others of the runtime want done now and then outside of the program's own threads.
//
// It sleeps on the futex ArenaControl::request, so it costs nothing while nobody wants anything. It holds no lock of
// the program's, has all signals blocked, and is unknown to libc (own_thread.h). Where the program asks the kernel for
// something that a process with two threads cannot have, or that would be done to the calling thread alone (unshare,
// setns, setuid and their like), it is taken away meanwhile (single_thread.cc).
#pragma once
#include <cstdint>

#include "format/control.h"

namespace karst::runtime {

struct Moment {
  std::uint64_t ticks;  ///< TSC
  std::uint64_t ns;     ///< CLOCK_MONOTONIC_RAW
};

/// What the maintenance thread calls: returns in how many nanoseconds it wants to be called again, kOnWake if only when
/// somebody wakes the thread. It is called at every wake-up, whoever's that is, and soon after the thread has started:
/// also in a forked child, where it runs for the first time with the parent's memory as it was at the fork. It may make
/// system calls and take its time, but holds up requests meanwhile; see own_thread.h for what it may not do.
using Task = std::uint64_t (*)(const Moment& now);
inline constexpr std::uint64_t kOnWake = ~std::uint64_t{0};

/// At start, before start_maintenance(). At most 8.
void add_task(Task task);

/// When the arena is there: makes the thread, if `control` is on (KARST_OPTIONS control=0) and one can be had.
void start_maintenance(bool control);
/// In a forked child that has got an arena: makes it again if its parent had one.
void renew_maintenance();
bool has_maintenance();

/// Makes the thread go round now. Async-signal-safe, any thread: one atomic addition to `request` and a system call.
/// Requesters therefore wait until `applied` has passed their own number, not until it is equal.
void wake_maintenance();
/// Lets the tasks be called soon, if nobody wakes the thread for more. Async-signal-safe, any thread: a system call. It
/// may be lost, where the thread is about to sleep.
void nudge_maintenance();

/// No thread any more, for good: the program is about to give up what it may do (a seccomp filter is the calling
/// thread's alone, and one thread without it would be a way around).
void end_maintenance();

/// Takes the thread away while this lives.
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
