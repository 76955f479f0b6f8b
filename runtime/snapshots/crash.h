// SPDX-License-Identifier: MIT
// on-crash=1: a signal that would end the process makes it write a trace first.
//
// Our handler stands only where the program has none: what the program installs takes its place, and when the program
// goes back to the default, ours is back (snapshots/signal_actions.cc). So a program that handles its faults is not
// disturbed, and one that reports crashes and then dies by the default action leaves a trace after its report. Behind
// ours the same signal, with the same information, comes again and does what it would have done: core, status and
// reason are as without us. The handler has a stack of its own in threads that have none for signals: a stack that
// overflowed has no room.
#pragma once
#include <signal.h>

#include "runtime/system/options.h"

namespace karst::runtime {

/// At start.
void take_crashes(const Options& options);
/// True for the signals that are meant, if on-crash=1.
bool ends_by_crash(int number);
/// What sigaction() means for such a signal. `next` sets it.
int change_crash_action(int (*next)(int, const struct sigaction*, struct sigaction*), int number,
                        const struct sigaction* action, struct sigaction* before);
/// The same for sigaltstack() of the calling thread: the program is not told of our stack. -errno.
long change_signal_stack(const stack_t* stack, stack_t* before);

/// A thread has joined, or is about to leave: its stack for our handler. Nothing unless on-crash=1.
void give_crash_stack();
void take_crash_stack();

}  // namespace karst::runtime
