// SPDX-License-Identifier: MIT
// signal=USR2: a signal makes the process write a snapshot of itself, to numbered files.
//
// Our handler does nothing but make a thread for the snapshot and call the program's own handler, if it has one: what
// the program asks of libc for this signal (snapshots/signal_actions.cc) is kept here and told to it, and ours stays
// installed.
#pragma once
#include <signal.h>

#include "runtime/system/options.h"

namespace karst::runtime {

/// At start.
void take_signal(const Options& options);
/// The signal that is ours, or 0.
int taken_signal();
/// What sigaction() means for that signal. 0, or -1 with errno.
int change_own_action(const struct sigaction* action, struct sigaction* before);

}  // namespace karst::runtime
