#include "runtime/core/clock.h"

#include <time.h>

#include "runtime/core/syscalls.h"

namespace karst::runtime {

using namespace format;

std::uint64_t clock_ns(int clock) {
  timespec t{};
  sys::call(SYS_clock_gettime, clock, sys::word(&t));
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

void note_start_time(ArenaHeader& h) {
  std::uint64_t best = ~std::uint64_t{0};
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before = __builtin_ia32_rdtsc();
    const std::uint64_t raw = clock_ns(CLOCK_MONOTONIC_RAW);
    const std::uint64_t after = __builtin_ia32_rdtsc();
    if (after - before >= best) continue;
    best = after - before;
    h.start_ticks = before + best / 2;
    h.start_monotonic_raw_ns = raw;
    h.start_realtime_ns = clock_ns(CLOCK_REALTIME);
  }
  h.start_uncertainty_ticks = best / 2;
}

}  // namespace karst::runtime
