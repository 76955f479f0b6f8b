// SPDX-License-Identifier: MIT
// What this process records, as those above have decided it: nothing while tracing as a whole is off, and counts in the
// place of events under `karst run --count`.
#pragma once
#include <cstdint>

#include "runtime/recording/arena.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

extern bool g_switched_on;  ///< written by patching/live_patch.cc
extern bool g_counting;

/// Tracing as a whole, and a function's own switch, as they were last applied. Lock-free.
inline bool is_switched_on() { return load(g_switched_on); }
inline bool is_switched_on(std::uint32_t id) {
  return (load(g_arena.functions()[id].flags) & format::kArenaFunctionSwitchedOn) != 0;
}

/// This process counts calls, and records no event.
inline bool is_counting() { return g_counting; }

}  // namespace karst::runtime
