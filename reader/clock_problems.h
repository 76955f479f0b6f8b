// SPDX-License-Identifier: MIT
// What the readings of the clocks in a trace tell of its clock.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace karst::reader {

/// Between two readings the trace's clock may be so far from CLOCK_MONOTONIC_RAW, beside the readings' own uncertainty:
/// this, and a thousandth of the time between them.
inline constexpr std::uint64_t kClockTolerance = 1'000'000;  // ns
/// The wall clock may be so far from it: more than any leap second. A machine that was suspended for longer is noticed.
inline constexpr std::uint64_t kWallTolerance = 2'000'000'000;  // ns

/// What readings show that cannot be of one steady clock, one sentence each: the counter went backwards, its rate
/// changed (a suspended machine, a virtual one that moved), or the wall clock went on alone. Readings in any order;
/// uncertainties in ns. Nothing is known of what happened behind the last reading.
std::vector<std::string> clock_problems(const Clock& clock);

}  // namespace karst::reader
