// SPDX-License-Identifier: MIT
// Whose arena a process has, by a word in memory that the kernel wipes in children. So a forked child finds out what it
// is however it was made, also by a raw system call. process/fork.h says what becomes of it.
#pragma once
#include <cstdint>

namespace karst::runtime {

enum class ArenaLife : std::uint32_t {
  kUnknown = 0,   ///< as the kernel wipes it: a child that has not had an event
  kOwn = 1,       ///< the arena is this process's own
  kAdopting = 2,  ///< a thread is making it
  kUntraced = 3,
};

/// At start, when there is an arena: it is this process's own. False when memory is short.
bool own_arena_from_now_on();

/// A futex's word, of ArenaLife. Null: there is no arena.
std::uint32_t* arena_life();

/// True in a child made by fork, in any way, that has no arena of its own (yet).
bool in_forked_child();

}  // namespace karst::runtime
