// What one event costs the thread that records it, measured in this process with the hooks that are in force.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// Parts of a nanosecond that costs are given in.
inline constexpr std::uint64_t kEventCostUnit = 64;
/// Of a sled that is off, a NOP in the program's code: what SQLite became slower by for each. Lua became no slower.
inline constexpr std::uint64_t kNopCost = kEventCostUnit / 10;

/// At start, by any thread that has a thread-local area: times some hundred events in memory of its own, in some 60 us.
void measure_event_cost();
/// Writes what a call costs with the hooks in force now into the arena's header, for readers of the trace.
void publish_call_cost();

/// In 1/kEventCostUnit ns; with those hooks that are in force now. The maintenance thread.
std::uint64_t cost_of_event();

extern "C" {
/// Calls both hooks `pairs` times, as sleds do by their trampolines, with `body` multiplications in between
/// (arch/*/event_cost.S). The other one does these alone.
__attribute__((visibility("hidden"))) void karst_make_events(void (*enter)(), void (*exit)(), std::uint64_t pairs,
                                                             std::uint64_t body);
__attribute__((visibility("hidden"))) void karst_make_bodies(void (*enter)(), void (*exit)(), std::uint64_t pairs,
                                                             std::uint64_t body);
}

}  // namespace karst::runtime
