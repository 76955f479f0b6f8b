// SPDX-License-Identifier: MIT
// The maintenance process's rounds: it applies what is wanted, runs the tasks that are due, and waits on the futex
// until the next one is, or somebody knocks.
#include "runtime/maintenance/control.h"

#include <sched.h>
#include <time.h>

#include "arch/cpu.h"
#include "runtime/clock/clock.h"
#include "runtime/maintenance/seams.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/system/lock.h"
#include "runtime/system/memory.h"
#include "runtime/system/own_process.h"
#include "runtime/system/own_thread.h"
#include "runtime/system/patch_lock.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::uint32_t kMostTasks = 8;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

Task g_tasks[kMostTasks];
std::uint32_t g_task_count;

OwnProcess g_process;
OwnThread g_thread;  // of do_in_thread()
std::uint32_t g_thread_is_taken;
WipedLock g_lock;  // of making and taking away
bool g_wanted;     // there shall be one, but while it is away
std::uint32_t g_pid;
std::uint32_t g_away;   // how many want it away
std::uint32_t g_leave;  // it shall end
bool g_in_child;        // its first round is to make code and switches equal

std::uint32_t own_pid() { return static_cast<std::uint32_t>(sys::getpid()); }

Moment moment() { return {arch::time_stamp(), clock_ns(CLOCK_MONOTONIC_RAW)}; }

void set_state(ControlThread state) { store(g_arena.control().thread, static_cast<std::uint32_t>(state)); }

// ---- the process --------------------------------------------------------------------------------

/// True if the time has come at which tracing ends; else `*wait` is how long that takes, if it is to come.
bool time_is_up(ArenaControl& c, std::uint64_t& wait) {
  const std::uint64_t at = load(c.off_at_ticks);
  if (at == 0) return false;
  const std::uint64_t ticks = arch::time_stamp();
  if (ticks < at) {
    const std::uint64_t rate = ticks_per_us(g_arena.header());
    // A little early: the rate is an estimate, and a wait of a millisecond costs nothing.
    const std::uint64_t left = rate == 0 ? 1'000'000 : (at - ticks) / rate * 1000 / 64 * 63 + 1000;
    wait = left < wait ? left : wait;
    return false;
  }
  if (!exchange_if(c.off_at_ticks, at, std::uint64_t{0})) return false;
  store(c.enabled, 0U);
  return true;
}

std::uint64_t run_tasks() {
  std::uint64_t wait = kOnWake;
  for (std::uint32_t i = 0; i < g_task_count; ++i) {
    const std::uint64_t asked = g_tasks[i](moment());
    wait = asked < wait ? asked : wait;
  }
  return wait;
}

/// Does what there is to do; returns how long to sleep at most.
std::uint64_t round(std::uint32_t seen) {
  ArenaControl& c = g_arena.control();
  std::uint64_t wait = kNsPerSecond;
  const bool timer = time_is_up(c, wait);
  const std::uint32_t before = load(c.applied);
  if (timer || seen != before) {
    const ControlOutcome outcome = apply_switches(timer ? SwitchReason::kTimer : SwitchReason::kRequest);
    store(c.outcome, static_cast<std::uint32_t>(outcome));
  }
  const std::uint64_t asked = run_tasks();
  if (seen != before) {
    store(c.applied, seen);
    sys::call(SYS_futex, sys::word(&c.applied), FUTEX_WAKE, 0x7fffffff);
  }
  return asked < wait ? asked : wait;
}

/// Readings of the clocks while the process lives: after 10 ms, for the rate, then less and less often.
class ClockNotes {
 public:
  /// Makes one if it is time; returns how long it is to the next one, in ns.
  std::uint64_t note() {
    const std::uint64_t now = clock_ns(CLOCK_MONOTONIC_RAW);
    if (now >= due_) {
      if (due_ != 0) note_later_time(g_arena.header());
      due_ = now + pause_;
      pause_ = pause_ < kNsPerSecond / 10 ? pause_ * 10 : kNsPerSecond;
    }
    return due_ - now;
  }

 private:
  std::uint64_t due_ = 0;
  std::uint64_t pause_ = 10'000'000;
};

void work() {
  ArenaControl& c = g_arena.control();
  if (g_in_child) {
    const Patching lock;
    mend_after_fork();
    note_patched();
    g_in_child = false;
  }
  std::uint64_t looked = clock_ns(CLOCK_MONOTONIC_RAW);
  ClockNotes clocks;
  while (load(g_leave) == 0) {
    const std::uint32_t seen = load(c.request);
    std::uint64_t wait = round(seen);
    const std::uint64_t until_note = clocks.note();
    if (until_note < wait) wait = until_note;
    timespec time{static_cast<time_t>(wait / kNsPerSecond), static_cast<long>(wait % kNsPerSecond)};
    // Others wait and wake from outside of the process: not a private futex.
    constexpr long kTimedOut = -110;
    if (load(g_leave) != 0) return;
    if (sys::call(SYS_futex, sys::word(&c.request), FUTEX_WAIT, seen, sys::word(&time)) != kTimedOut) continue;
    const std::uint64_t now = clock_ns(CLOCK_MONOTONIC_RAW);
    if (now - looked < kNsPerSecond / 4 * 3) continue;
    looked = now;
    if (!program_is_there()) return;
  }
}

void begin() {
  store(g_leave, 0U);
  set_state(ControlThread::kRunning);
  if (!g_process.start(work, kMaintenanceName)) set_state(ControlThread::kNone);
}

/// In a vfork's child, and in a child by a bare fork, all that is here is its parent's.
bool is_ours() { return load(g_wanted) && own_pid() == g_pid; }

}  // namespace

void add_task(Task task) {
  if (g_task_count < kMostTasks) g_tasks[g_task_count++] = task;
}

void start_maintenance(bool control) {
  if (!control || !g_lock.create()) return;
  g_pid = own_pid();
  store(g_wanted, true);
  prepare_live_patch();
  begin();
}

void renew_maintenance() {
  if (!load(g_wanted)) return;
  g_process.forget();
  g_thread.forget();
  g_thread_is_taken = 0;
  g_away = 0;
  g_in_child = true;
  g_pid = own_pid();
  begin();
  if (g_process.running() || !was_forked_in_change()) return;
  const Patching lock;
  mend_after_fork();
}

bool has_maintenance() { return is_ours() && g_process.running(); }

void wake_maintenance() {
  if (!g_arena.exists()) return;
  ArenaControl& c = g_arena.control();
  __atomic_add_fetch(&c.request, 1, __ATOMIC_ACQ_REL);
  sys::call(SYS_futex, sys::word(&c.request), FUTEX_WAKE, 0x7fffffff);
}

void nudge_maintenance() {
  if (has_maintenance()) sys::call(SYS_futex, sys::word(&g_arena.control().request), FUTEX_WAKE, 1);
}

void ask_for_memory_ahead() { nudge_maintenance(); }

bool do_in_thread(const ThreadWork& work) {
  static ThreadWork s_work;
  if (!is_ours() || load(g_away) != 0) return false;
  // Who has taken it looks at what is pending once more when it has given it back.
  if (!exchange_if(g_thread_is_taken, 0U, 1U)) return true;
  g_thread.wait_until_gone();
  s_work = work;
  const bool started = g_thread.start([] {
    const ThreadWork own = s_work;
    do {
      while (own.pending()) own.work();
      store(g_thread_is_taken, 0U);
    } while (own.pending() && exchange_if(g_thread_is_taken, 0U, 1U));
  });
  if (!started) store(g_thread_is_taken, 0U);
  return started;
}

namespace {

/// Under the lock.
void take_away() {
  if (!g_process.running()) return;
  store(g_leave, 1U);
  wake_maintenance();
  g_process.wait_until_gone();
  set_state(ControlThread::kStopped);
}

}  // namespace

MaintenanceAway::MaintenanceAway() {
  if (!is_ours()) return;
  taken_ = true;
  const Locked lock(g_lock);
  if (g_away++ != 0) return;
  take_away();
  g_thread.wait_until_gone();
}

MaintenanceAway::~MaintenanceAway() {
  if (!taken_ || !is_ours()) return;
  const Locked lock(g_lock);
  if (g_away != 0 && --g_away == 0) begin();
}

void end_maintenance() {
  const MaintenanceAway away;
  if (is_ours()) store(g_wanted, false);
}

}  // namespace karst::runtime
