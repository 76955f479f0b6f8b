// SPDX-License-Identifier: MIT
#include "runtime/clock/clock.h"

#include <time.h>

#include "arch/cpu.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

extern "C" {
__attribute__((visibility("hidden"))) ClockLine karst_clock;
__attribute__((visibility("hidden"))) std::uint32_t karst_clock_on;
}
std::uint32_t g_clock_asleep;

std::uint64_t event_time() {
  for (;;) {
    const std::uint64_t ticks = stamp();
    if (ticks != kClockSleeps) [[likely]]
      return ticks;
    const std::uint64_t here = arch::time_stamp();
    if (!exchange_if(karst_clock.ticks, kClockSleeps, here)) continue;  // another thread was faster
    store(g_clock_asleep, 0U);
    sys::call(SYS_futex, sys::word(&g_clock_asleep), FUTEX_WAKE_PRIVATE, 1);
    return here;
  }
}

std::uint64_t clock_ns(int clock) {
  timespec t{};
  sys::call(SYS_clock_gettime, clock, sys::word(&t));
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

namespace {

struct Pair {
  std::uint64_t ticks;
  std::uint64_t raw_ns;
  std::uint64_t realtime_ns;
  std::uint64_t uncertainty;  // ticks
};

/// The closest of a few: between two readings the thread may be taken its CPU.
Pair read_pair() {
  Pair best{0, 0, 0, ~std::uint64_t{0}};
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before = arch::time_stamp();
    const std::uint64_t raw = clock_ns(CLOCK_MONOTONIC_RAW);
    const std::uint64_t half = (arch::time_stamp() - before) / 2;
    if (half < best.uncertainty) best = {before + half, raw, clock_ns(CLOCK_REALTIME), half};
  }
  return best;
}

}  // namespace

void note_start_time(ArenaHeader& h) {
  const Pair p = read_pair();
  h.start_ticks = p.ticks;
  h.start_monotonic_raw_ns = p.raw_ns;
  h.start_realtime_ns = p.realtime_ns;
  h.start_uncertainty_ticks = p.uncertainty;
}

void note_later_time(ArenaHeader& h) {
  const Pair p = read_pair();
  const std::uint64_t number = load(h.clock_readings);
  h.clocks[number % 2] = {p.ticks, p.raw_ns, p.realtime_ns, p.uncertainty};
  store(h.clock_readings, number + 1);
}

std::uint64_t ticks_per_us(const ArenaHeader& h, std::uint64_t parts) {
  const Pair p = read_pair();
  const std::uint64_t ticks = p.ticks - h.start_ticks;
  const std::uint64_t us = (p.raw_ns - h.start_monotonic_raw_ns) / 1000;
  if (us < 200 || ticks / parts < p.uncertainty + h.start_uncertainty_ticks) return 0;
  return ticks / us;
}

}  // namespace karst::runtime
