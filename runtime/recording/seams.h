// SPDX-License-Identifier: MIT
// What recording asks of the folders above it. They define it, and the linker ties the two: no hook pays for that, and
// a call is never made before somebody is there to take it. test/rooms sees to it that nothing else is called upwards.
#pragma once
#include <cstdint>

#include "runtime/recording/state.h"

namespace karst::runtime {

/// Makes sure that the arena is this process's own; in a forked child that has none yet it is made. False if the child
/// is not traced. Call it before touching the arena anywhere but in hooks. Any thread, also in signal handlers; waits
/// while another thread does the same. (process/fork.cc)
bool own_arena();

/// The calling thread has joined, or is about to leave: what others have for each thread. Signals are blocked.
/// (start/thread_life.cc)
void thread_has_joined();
void thread_leaves(ThreadState& state);

/// A thread will need memory for blocks soon: Arena::reserve_ahead() is to be called by somebody who may wait for it.
/// Any context; may be lost. (maintenance/control.cc)
void ask_for_memory_ahead();

/// Sets the hooks that are right now: by the options (karst_min_duration, karst_clock_on, is_counting()), by what
/// threads there are, and whether anything is recorded still. Any thread. (patching/choose_hooks.cc)
void choose_hooks();
/// The part of it that changes when tracing as a whole is switched on or off. Any thread.
void choose_marks();

/// Before a note or mark, whose frames begin about here: sees to it that the thread's stack is known, where stacks are
/// found. Any context. (fibers/stacks.cc)
void find_stack_of_note(std::uintptr_t stack);

}  // namespace karst::runtime
