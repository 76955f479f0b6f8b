// SPDX-License-Identifier: MIT
// Times of one trace on the clock of another. Two traces of one machine, between two starts of it, were stamped by the
// same clock, and keep their times. Others are laid beside each other by the wall clock: CLOCK_REALTIME, of which both
// have readings beside their own clock.
#pragma once
#include <cstdint>

#include "base/clock.h"
#include "base/result.h"

namespace karst::writing {

/// Ticks of one clock as ticks of another; in order as they were.
class TickMap {
 public:
  /// `from` becomes `to`, and a second of `from_rate` ticks one of `to_rate`.
  TickMap(std::uint64_t from, std::uint64_t from_rate, std::uint64_t to, std::uint64_t to_rate)
      : from_(from), to_(to), from_rate_(from_rate), to_rate_(to_rate) {}
  /// Ticks stay what they are.
  TickMap() = default;

  bool is_same() const { return from_ == to_ && from_rate_ == to_rate_; }
  /// A moment. 0 stays 0, which stands for none; what is beyond either end is held there.
  std::uint64_t at(std::uint64_t ticks) const;
  /// A length of time.
  std::uint64_t length(std::uint64_t ticks) const;

 private:
  std::uint64_t from_ = 0, to_ = 0;
  std::uint64_t from_rate_ = 1, to_rate_ = 1;
};

struct Alignment {
  TickMap map;
  bool same_clock = false;
  std::uint64_t off_by_ns = 0;  ///< by what the readings tell; not how far two machines' wall clocks are apart
};

/// How times of `of` become times of `base`. Error: one has no readings of the wall clock, or it was set while a trace
/// was recorded, by more than a second.
Result<Alignment> align(const Clock& base, const Clock& of);

/// Nanoseconds of CLOCK_REALTIME at these ticks, by the clock's first reading; 0: it has none.
std::uint64_t wall_ns(const Clock& clock, std::uint64_t ticks);

}  // namespace karst::writing
