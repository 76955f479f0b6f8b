// SPDX-License-Identifier: MIT
// Which hooks are in force: by the options, by what threads there are, and by whether anything is recorded. They are
// stored where trampolines read them, so all sleds change at once (recording/seams.h declares it, as threads ask).
#include "runtime/clock/clock.h"
#include "runtime/fibers/stacks.h"
#include "runtime/modules/hooks.h"
#include "runtime/recording/marks.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {

namespace {

// While tracing is off there is nobody whose calls a jump could end, and what was recorded before is worth keeping. The
// assembly that writes marks knows the TSC alone, finds its thread by the thread-local pointer, watches no calls and
// finds no stacks.
bool marks_are_slow() {
  return recording_has_stopped() || is_counting() || threads_are_found_by_tid() || load(karst_clock_on) != 0 ||
         !is_switched_on() || is_watching() || stacks_are_found();
}

void set_recording_hooks(Hook enter, Hook exit, Hook watched_enter, Hook watched_exit) {
  if (stacks_are_found())
    set_hooks_behind_stacks(enter, exit, watched_enter, watched_exit);
  else
    set_hooks(enter, exit, watched_enter, watched_exit);
}

}  // namespace

void choose_marks() {
  // Another thread may be here for another reason: the last look is behind both.
  for (bool slow = marks_are_slow();;) {
    store(karst_marks_slowly, slow ? 1U : 0U);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const bool still = marks_are_slow();
    if (still == slow) return;
    slow = still;
  }
}

void choose_hooks() {
  choose_marks();
  if (recording_has_stopped()) {
    set_hooks(karst_hook_discard, karst_hook_discard);
  } else if (is_counting()) {
    set_hooks(threads_are_found_by_tid() ? karst_hook_count_by_tid : karst_hook_count, karst_hook_discard);
  } else if (threads_are_found_by_tid()) {
    set_hooks(karst_hook_trace_by_tid, karst_hook_trace_by_tid);
  } else if (load(karst_clock_on) != 0) {
    set_recording_hooks(karst_hook_trace_clock,
                        karst_min_duration != 0 ? karst_hook_trim_clock : karst_hook_trace_clock,
                        karst_hook_watch_enter_clock, karst_hook_watch_exit_clock);
  } else {
    set_recording_hooks(karst_hook_trace, karst_min_duration != 0 ? karst_hook_trim : karst_hook_trace,
                        karst_hook_watch_enter, karst_hook_watch_exit);
  }
}

}  // namespace karst::runtime
