// SPDX-License-Identifier: MIT
// `karst run --count`: the number of calls of each function, and no events. Entries alone are patched; their hook
// (karst_hook_count) adds one to the function's counter in a page of its thread's own, so threads never meet. The pages
// lie in the arena (format/arena.h), whose reader sums them: what a killed process counted is there.
//
//   state.counts -> directory, one entry for 512 ids -> page of 512 counters
//
// A thread that ends leaves its pages, counts and all, to those that come: memory grows by the threads that live at the
// same time.
#pragma once
#include <cstdint>

#include "runtime/recording/state.h"

namespace karst::runtime {

/// At start, before hooks are in use: this process counts (recording/mode.h).
void begin_counting();

/// The thread is leaving: its pages are the next one's. Signals are blocked.
void leave_counts(ThreadState& state);
/// In a forked child with an arena of its own: no page of its parent's is there.
void renew_counts();

extern "C" {
/// A call whose counter is not where the hook looks: a thread's first call, or first of these functions, or a forked
/// child's. Async-signal-safe.
__attribute__((visibility("hidden"))) void karst_count_slowly(std::uint32_t id);
/// For threads that a thread-local pointer cannot find (process/clone.cc).
__attribute__((visibility("hidden"))) void karst_count_by_tid(std::uint64_t event_low_bits);
}

}  // namespace karst::runtime
