// What one event costs the thread that records it, measured in this process with the hooks that are in force.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// Parts of a nanosecond that costs are given in.
inline constexpr std::uint64_t kEventCostUnit = 64;
/// Of a sled that is off, a NOP in the program's code: what SQLite became slower by for each. Lua became no slower.
inline constexpr std::uint64_t kNopCost = kEventCostUnit / 10;

/// At start, by any thread that has a thread-local area: times some hundred events in memory of its own, in some 20 us.
void measure_event_cost();

/// In 1/kEventCostUnit ns; with those hooks that are in force now. The maintenance thread.
std::uint64_t cost_of_event();

extern "C" {
/// Calls both hooks `pairs` times, as sleds do by their trampolines (arch/*/event_cost.S).
__attribute__((visibility("hidden"))) void karst_make_events(void (*enter)(), void (*exit)(), std::uint64_t pairs);
}

}  // namespace karst::runtime
