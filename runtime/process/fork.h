// SPDX-License-Identifier: MIT
// Forked children: each becomes a process of its own, with an arena of its own, at its first event.
//
// A child that execs or exits at once pays for one mapping of empty memory. It finds out what it is by system/forked.h.
// Its arena has its parent's tables of modules and functions: they are the part of the parent's arena that is mapped in
// children too. own_arena() (recording/seams.h) makes it.
#pragma once
#include "runtime/system/options.h"

namespace karst::runtime {

/// At start, when the arena exists. False when memory is short.
bool follow_forks(const Options& options);

/// The calling thread is about to make a child without shared memory, which begins on a stack of its own; in that
/// child, before anything else of it.
void note_clone();
void in_cloned_child();

}  // namespace karst::runtime
