// SPDX-License-Identifier: MIT
// Watched functions: their calls are timed as they end, and those that are to be kept are noted (format/watch.h).
//
// The hooks of watched functions (arch/*/watch_hooks.S) keep a stack of the thread's open watched calls: the enter's
// event, and the stack pointer at the sled, which is the same at the call's exit, however functions are nested and
// whatever ids they have. An exit that finds its call on top, shorter than the function's limit, is through; all others
// come here. Calls that end by an exception or a jump are found by the stack pointer, too: they lie between the one
// that left and the one that execution goes on with.
//
// An entry is taken before it is filled, and its `enter` is 0 until it is, so signal handlers may come in between.
#ifndef KARST_RUNTIME_WATCHING_WATCH_H
#define KARST_RUNTIME_WATCHING_WATCH_H

#define KARST_WATCH_STACK (1 << 18)
#define KARST_WATCH_ENTRY 32
#define KARST_WATCH_ENTER 0
#define KARST_WATCH_POINTER 8
#define KARST_WATCH_EPOCH 16
#define KARST_WATCH_LIMIT 24
#define KARST_WATCHED_SHIFT 5
#define KARST_WATCHED_FIRST 8

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

#include "format/event.h"

namespace karst::runtime {

struct ThreadState;

/// One open watched call.
struct WatchEntry {
  format::Event enter;     ///< 0: none, or not yet
  std::uintptr_t pointer;  ///< the stack pointer at the sled
  std::uint32_t epoch;     ///< as ThreadState::epoch
  std::uint32_t unused;
  std::uint64_t limit;  ///< ticks; a shorter call is not looked at
};
static_assert(sizeof(WatchEntry) == KARST_WATCH_ENTRY && offsetof(WatchEntry, enter) == KARST_WATCH_ENTER);
static_assert(offsetof(WatchEntry, pointer) == KARST_WATCH_POINTER && offsetof(WatchEntry, epoch) == KARST_WATCH_EPOCH);
static_assert(offsetof(WatchEntry, limit) == KARST_WATCH_LIMIT);

/// What a hook needs to know of a function, by id.
struct WatchedFunction {
  std::uint64_t limit;
  std::uint32_t first;  ///< number + 1 of its first watch; 0: it is not watched
  std::uint32_t unused;
  std::uint64_t since;  ///< it is watched from then on; calls that began before have no entry of theirs
  std::uint64_t unused2;
};
static_assert(sizeof(WatchedFunction) == 1 << KARST_WATCHED_SHIFT && offsetof(WatchedFunction, limit) == 0);
static_assert(offsetof(WatchedFunction, first) == KARST_WATCHED_FIRST);

extern "C" {
/// Null: nothing is watched.
extern __attribute__((visibility("hidden"))) WatchedFunction* karst_watched;
/// From the hooks: a call begins and there is no entry for it; one ends and is not the top one, or not short. Any
/// context.
__attribute__((visibility("hidden"))) void karst_watch_enter(format::Event enter, std::uintptr_t pointer);
__attribute__((visibility("hidden"))) void karst_watch_exit(format::Event exit, std::uintptr_t pointer);
}

inline bool is_watching() { return __atomic_load_n(&karst_watched, __ATOMIC_ACQUIRE) != nullptr; }
inline bool is_watched(std::uint32_t id) {
  const WatchedFunction* all = __atomic_load_n(&karst_watched, __ATOMIC_ACQUIRE);
  return all != nullptr && __atomic_load_n(&all[id].first, __ATOMIC_ACQUIRE) != 0;
}

/// The calling thread has left all calls whose frames lie in [from, until) of its stack, without their exits. Any
/// context.
void calls_left(std::uintptr_t from, std::uintptr_t until);

/// At start, with an arena.
void prepare_watching(bool no_system_calls);
/// Takes over what requesters have entered since. Any thread, outside of signal handlers and of the lock of patching;
/// `sleds`: also of functions with sleds (not where a lock of the dynamic linker's may be held).
void apply_watches(bool sleds = true);
/// In a forked child with an arena of its own, before its first event.
void renew_watches();
/// The thread ends.
void leave_watch(ThreadState& state);

/// The least time, in ticks, that a call of the function must take to be kept now.
std::uint64_t watch_limit(std::uint32_t function);
/// For the thread that copies: a candidate is free again.
void free_candidate(std::uint32_t candidate);
/// The first candidate in use from number `from` on; 0: there is none.
std::uint32_t next_candidate(std::uint32_t from);
/// True once since the last time: there are new candidates.
bool take_pending();

}  // namespace karst::runtime
#endif
#endif
