// SPDX-License-Identifier: MIT
#include "write/tick_map.h"

#include <algorithm>
#include <limits>

namespace karst::writing {
namespace {

__extension__ using Wide = __int128;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::uint64_t held(Wide value, std::uint64_t least) {
  if (value < static_cast<Wide>(least)) return least;
  return value > static_cast<Wide>(kMost) ? kMost : static_cast<std::uint64_t>(value);
}

Wide difference(std::uint64_t a, std::uint64_t b) { return static_cast<Wide>(a) - static_cast<Wide>(b); }

std::uint64_t distance(Wide a, Wide b) { return held(a > b ? a - b : b - a, 0); }

bool knows_wall_clock(const Clock& clock) {
  return clock.ticks_per_second != 0 && !clock.pairs.empty() &&
         std::all_of(clock.pairs.begin(), clock.pairs.end(), [](const ClockPair& of) { return of.realtime_ns != 0; });
}

/// How far the wall clock strays from the trace's own, over its readings.
std::uint64_t strays_by(const Clock& clock) {
  std::uint64_t most = 0;
  for (const ClockPair& of : clock.pairs) {
    const std::uint64_t off = distance(wall_ns(clock, of.ticks), of.realtime_ns) + of.uncertainty_ns;
    most = std::max(most, off);
  }
  return most;
}

/// How far two clocks' first readings are from being those of one machine.
struct Apart {
  std::uint64_t elapsed = 0;  ///< between the two, by CLOCK_MONOTONIC_RAW
  std::uint64_t ticks = 0;    ///< that and the elapsed ticks
  std::uint64_t wall = 0;     ///< that and the wall clock's
};

Apart apart(const Clock& base, const Clock& of) {
  const ClockPair& a = base.pairs.front();
  const ClockPair& b = of.pairs.front();
  const Wide raw = difference(b.monotonic_raw_ns, a.monotonic_raw_ns);
  const Wide ticks = difference(b.ticks, a.ticks) * static_cast<Wide>(kSecond) / base.ticks_per_second;
  return {distance(raw, 0), distance(raw, ticks), distance(raw, difference(b.realtime_ns, a.realtime_ns))};
}

/// One machine's clocks agree but for the drift of a rate that was measured, and of a wall clock that is kept right.
/// Two machines have started at other times, which both differences show.
bool are_one_clock(const Clock& base, const Clock& of) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  const Apart by = apart(base, of);
  const std::uint64_t drift = by.elapsed / 20'000;
  return distance(base.ticks_per_second, of.ticks_per_second) <= base.ticks_per_second / 10'000 &&
         by.ticks <= kMillisecond + drift && by.wall <= 50 * kMillisecond + drift;
}

}  // namespace

std::uint64_t TickMap::at(std::uint64_t ticks) const {
  if (is_same() || ticks == 0) return ticks;
  return held(static_cast<Wide>(to_) + difference(ticks, from_) * static_cast<Wide>(to_rate_) / from_rate_, 1);
}

std::uint64_t TickMap::length(std::uint64_t ticks) const {
  if (from_rate_ == to_rate_) return ticks;
  return held(static_cast<Wide>(ticks) * to_rate_ / from_rate_, 0);
}

std::uint64_t wall_ns(const Clock& clock, std::uint64_t ticks) {
  if (clock.pairs.empty() || clock.ticks_per_second == 0) return 0;
  const ClockPair& of = clock.pairs.front();
  const Wide since = difference(ticks, of.ticks) * static_cast<Wide>(kSecond) / clock.ticks_per_second;
  return held(static_cast<Wide>(of.realtime_ns) + since, 0);
}

Result<Alignment> align(const Clock& base, const Clock& of) {
  if (!knows_wall_clock(base) || !knows_wall_clock(of))
    return Error{"it has no readings of the wall clock (CLOCK_REALTIME), by which times could be aligned"};
  if (are_one_clock(base, of)) return Alignment{TickMap(), true, apart(base, of).ticks};
  const std::uint64_t off_by = strays_by(base) + strays_by(of);
  if (off_by > kSecond)
    return Error{
        "the wall clock was set by more than a second while one of them was recorded, so that times cannot be "
        "aligned by it"};
  const ClockPair& a = base.pairs.front();
  const ClockPair& b = of.pairs.front();
  // Where b's first reading lies on a's clock.
  const Wide to = static_cast<Wide>(a.ticks) + difference(b.realtime_ns, a.realtime_ns) *
                                                   static_cast<Wide>(base.ticks_per_second) /
                                                   static_cast<Wide>(kSecond);
  if (to < 0 || to > static_cast<Wide>(kMost))
    return Error{"by the wall clock it was recorded before the other one's clock began, or ages after it"};
  return Alignment{TickMap(b.ticks, of.ticks_per_second, static_cast<std::uint64_t>(to), base.ticks_per_second), false,
                   off_by};
}

}  // namespace karst::writing
