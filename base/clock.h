// SPDX-License-Identifier: MIT
// The trace's clock: the TSC's rate, and readings of it beside the kernel's clocks. Any thread may call what is here.
#pragma once
#include <time.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace karst {

/// The trace's clock (the TSC) and the kernel's clocks at one moment.
struct ClockPair {
  std::uint64_t ticks = 0;
  std::uint64_t monotonic_raw_ns = 0;
  std::uint64_t realtime_ns = 0;
  std::uint32_t uncertainty_ns = 0;
};

/// What turns ticks of the trace's clock into nanoseconds.
struct Clock {
  std::uint64_t ticks_per_second = 1'000'000'000;
  std::uint32_t rate_source = 0;  ///< format::RateSource
  std::vector<ClockPair> pairs;

  /// Length of `ticks` ticks in nanoseconds, rounded down.
  std::uint64_t to_ns(std::uint64_t ticks) const {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    if (ticks < std::numeric_limits<std::uint64_t>::max() / kSecond) return ticks * kSecond / ticks_per_second;
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(ticks) * kSecond / ticks_per_second);
  }
};

/// One of the kernel's clocks now.
std::uint64_t clock_ns(clockid_t clock);

/// The TSC now, with CLOCK_MONOTONIC_RAW and CLOCK_REALTIME at the same moment; the best of several readings.
ClockPair read_clock_pair();

/// The TSC's rate and how it is known: from the kernel (the page that perf_event_open maps gives the factor that the
/// kernel itself uses), or else from the two pairs that are farthest apart. Of a clock that is not `ours`, of another
/// machine or before a restart, the other way round.
Clock make_clock(std::vector<ClockPair> pairs, bool ours = true);

}  // namespace karst
