// Forked children: each becomes a process of its own, with an arena of its own, at its first event.
//
// A child that execs or exits at once pays for one mapping of empty memory. It finds out what it is by memory that the
// kernel wipes in children, so also one that was made by a raw system call does. Its arena has its parent's tables of
// modules and functions: they are the part of the parent's arena that is mapped in children too.
#pragma once
#include "runtime/system/options.h"

namespace karst::runtime {

/// At start, when the arena exists. False when memory is short.
bool follow_forks(const Options& options);

/// True in a child made by fork, in any way, that has no arena of its own (yet).
bool in_forked_child();

/// Makes sure that the arena is this process's own; in a forked child that has none yet it is made. False if the child
/// is not traced. Call it before touching the arena anywhere but in hooks. Any thread, also in signal handlers; waits
/// while another thread does the same.
bool own_arena();

/// The calling thread is about to make a child without shared memory, which begins on a stack of its own; in that
/// child, before anything else of it.
void note_clone();
void in_cloned_child();

}  // namespace karst::runtime
