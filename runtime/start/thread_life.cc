// SPDX-License-Identifier: MIT
// What each thread has of the folders above recording/, from its first event to its end.
#include "runtime/counting/count.h"
#include "runtime/recording/mode.h"
#include "runtime/recording/seams.h"
#include "runtime/snapshots/crash.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {

void thread_has_joined() { give_crash_stack(); }

void thread_leaves(ThreadState& state) {
  take_crash_stack();
  if (is_counting())
    leave_counts(state);
  else
    leave_watch(state);
}

}  // namespace karst::runtime
