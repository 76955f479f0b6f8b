// SPDX-License-Identifier: MIT
// What one event costs the thread that records it, measured in this process with the hooks that are in force.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// Parts of a nanosecond that costs are given in.
inline constexpr std::uint64_t kEventCostUnit = 64;
/// Of a sled that is off, a NOP in the program's code: what SQLite became slower by for each. Lua became no slower.
inline constexpr std::uint64_t kNopCost = kEventCostUnit / 10;
/// Of one that lies in a stub: what gcc's cc1, which was not built for tracing, became slower by for each, which was
/// 2.0 ns on one machine (Zen 3) and 0.6 on another (Zen 5).
inline constexpr std::uint64_t kStubCost = 2 * kEventCostUnit;

/// What an event costs where the program does other things in between, in parts of what it costs among others: caches
/// and predictors have forgotten the hook. Seen by samples of programs under a budget: 22 to 24 ns in Lua, SQLite and
/// LevelDB, 24 to 50 ns by stubs in python3, git and cc1, where one among others was taken to cost 9 ns.
inline constexpr std::uint64_t kLonePercent = 250;
inline constexpr std::uint64_t kLoneStubPercent = 450;
inline constexpr std::uint64_t kAmongOthersNs = 50;  ///< so far apart, at most
inline constexpr std::uint64_t kLoneNs = 150;        ///< at least

/// At start, by any thread that has a thread-local area: times some hundred events in memory of its own, in some 60 us.
void measure_event_cost();
/// Writes what a call costs with the hooks in force now into the arena's header, for readers of the trace.
void publish_call_cost();

/// In 1/kEventCostUnit ns; with those hooks that are in force now. The maintenance process.
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
