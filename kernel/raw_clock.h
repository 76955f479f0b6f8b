// SPDX-License-Identifier: MIT
// Times of the kernel's records (CLOCK_MONOTONIC_RAW) as ticks of the trace's clock: by interpolation between paired
// readings of both.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace karst::kernel {

/// One thread at a time.
class RawClock {
 public:
  RawClock() : from_(read_clock_pair()), to_(from_) {}

  /// Reads both clocks. ticks_at() is for times since the reading before, or near. Takes a millisecond if that was
  /// just now.
  void read() {
    from_ = to_;
    do to_ = read_clock_pair();
    while (to_.monotonic_raw_ns - from_.monotonic_raw_ns < kShortest);
    ticks_per_ns_ = static_cast<double>(to_.ticks - from_.ticks) /
                    static_cast<double>(to_.monotonic_raw_ns - from_.monotonic_raw_ns);
    const double uncertainty = static_cast<double>(std::max(from_.uncertainty_ns, to_.uncertainty_ns));  // in ticks yet
    error_ns_ = std::max(error_ns_, static_cast<std::uint32_t>(uncertainty / ticks_per_ns_) + 2);
  }
  /// The same if the last reading was a while ago: for who asks often.
  void read_when_due() {
    constexpr std::uint64_t kDue = 10 * kShortest;
    if (ticks_per_ns_ == 0 || clock_ns(CLOCK_MONOTONIC_RAW) - to_.monotonic_raw_ns >= kDue) read();
  }
  std::uint64_t ticks_at(std::uint64_t raw_ns) const {
    const double ns = static_cast<double>(static_cast<std::int64_t>(raw_ns - to_.monotonic_raw_ns));
    return to_.ticks + static_cast<std::uint64_t>(static_cast<std::int64_t>(ns * ticks_per_ns_));
  }
  /// The latest reading.
  const ClockPair& now() const { return to_; }
  std::uint64_t ticks_of(double ns) const { return static_cast<std::uint64_t>(ns * ticks_per_ns_); }
  /// Bound of the error of all times until now.
  std::uint32_t error_ns() const { return error_ns_; }

 private:
  static constexpr std::uint64_t kShortest = 1'000'000;  // ns between readings, so that their error tilts no line

  ClockPair from_;
  ClockPair to_;
  double ticks_per_ns_ = 0;  ///< between the two
  std::uint32_t error_ns_ = 0;
};

}  // namespace karst::kernel
