// SPDX-License-Identifier: MIT
// What the files about threads share; thread.h is for others.
//
// thread.cc          how a thread joins and leaves, and what it asks for itself
// slow_path.cc       how it gets its next block, and words that belong together
// threads_by_tid.cc  threads that cannot be found by a thread-local pointer
// progress.cc        what is seen of a thread from outside of it
#pragma once
#include <cstdint>

#include "format/arena.h"
#include "runtime/recording/state.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

/// Before a thread's first event. Its cursor says "no slot", so nothing else of it is ever read by a hook; in a forked
/// child it may point into the sink.
extern ThreadState g_nobody;
/// One state per entry of the arena's thread table; wiped in forked children.
extern ThreadState* g_states;
/// prepare_threads(): no system call for a thread that has joined.
extern bool g_no_system_calls;

inline bool is_current(const ThreadState* state) {
  return state >= g_states && state < g_states + format::kArenaThreads;
}

inline std::uint32_t epoch_of(std::uint64_t ticks) { return static_cast<std::uint32_t>(ticks >> 32) & ~0xffU; }

/// For assertions.
inline bool is_active(const format::BlockHeader& b) {
  return load(b.state) == static_cast<std::uint32_t>(format::BlockState::kActive);
}

/// Where events go that nobody will read: of threads for which there is no memory or that asked for it, and of forked
/// children. Those that have g_nobody share one cursor, so what hooks add beyond the end adds up.
extern char g_sink[2 * KARST_BLOCK_SIZE];
bool in_sink(std::uintptr_t cursor);
void aim_at_sink(ThreadState& state);

/// Before a thread gives up its block with no next one. A handler may have been here with a later block.
void remember_last(ThreadState& state, std::uint64_t key);

/// A new entry for the calling thread; null when the table is full.
ThreadState* new_thread(std::uint32_t tid);
/// The calling thread has a state from now on, or events of g_nobody's go to the sink. Any context.
void join();
/// The living thread's state; null: it has none.
ThreadState* find_by_tid(std::uint32_t tid);

/// Gives the thread its next block. Lock-free: a signal handler that comes between does the same for itself, and
/// the cmpxchg on the cursor shows it.
void next_block(ThreadState& state);

}  // namespace karst::runtime
