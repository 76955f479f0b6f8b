// SPDX-License-Identifier: MIT
#include "runtime/timing/rate.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <time.h>

#include "arch/cpu.h"
#include "format/clock_source.h"
#include "runtime/clock/clock.h"
#include "runtime/recording/arena.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

/// As base/clock.cc: the factor by which the kernel itself makes nanoseconds of ticks. 0 when it does not tell.
std::uint64_t rate_from_kernel() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.size = sizeof attributes;
  attributes.exclude_kernel = 1;
  const long fd = sys::call(SYS_perf_event_open, sys::word(&attributes), 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return 0;
  const long page = sys::call(SYS_mmap, 0, KARST_BLOCK_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  sys::close(static_cast<int>(fd));
  if (sys::failed(page)) return 0;
  const auto& control = *reinterpret_cast<const volatile perf_event_mmap_page*>(page);
  std::uint64_t rate = 0;
  const std::uint64_t factor = control.time_mult;
  const unsigned shift = control.time_shift;
  if (control.cap_user_time != 0 && factor != 0 && shift < 64) {
    // ns = ticks * factor >> shift. 2^shift * 10^9 / factor, with 128 bits by 64.
    const std::uint64_t high = shift == 0 ? 0 : std::uint64_t{1'000'000'000} >> (64 - shift);
    const std::uint64_t low = std::uint64_t{1'000'000'000} << shift;
    if (high < factor) rate = arch::divide(high, low, factor);
  }
  sys::munmap(reinterpret_cast<void*>(page), KARST_BLOCK_SIZE);
  return rate;
}

std::uint64_t rate_since_start() {
  const ArenaHeader& h = g_arena.header();
  for (;;) {
    const std::uint64_t ns = clock_ns(CLOCK_MONOTONIC_RAW) - h.start_monotonic_raw_ns;
    const std::uint64_t ticks = arch::time_stamp() - h.start_ticks;
    if (ns >= 10'000'000) {
      // ticks * 10^9 / ns without 128-bit division by libgcc.
      std::uint64_t high = 0;
      const std::uint64_t low = arch::multiply(ticks, 1'000'000'000, high);
      return high < ns ? arch::divide(high, low, ns) : 1'000'000'000;
    }
    timespec pause{0, static_cast<long>(10'000'000 - ns)};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
  }
}

}  // namespace

bool is_counter_trusted() {
  char source[64] = {};
  const long fd = sys::open(kClockSourceFile, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    sys::read(static_cast<int>(fd), source, sizeof source - 1);
    sys::close(static_cast<int>(fd));
  }
  return counter_is_trusted(source, arch::counter_is_invariant());
}

Rate tsc_rate() {
  static std::uint64_t s_rate;
  static std::uint32_t s_source;
  if (const std::uint64_t known = load(s_rate); known != 0) return {known, static_cast<RateSource>(load(s_source))};
  Rate rate{rate_from_kernel(), RateSource::kPerf};
  if (rate.ticks_per_second == 0) rate = {rate_since_start(), RateSource::kPairs};
  store(s_source, static_cast<std::uint32_t>(rate.source));
  store(s_rate, rate.ticks_per_second);
  return rate;
}

std::uint64_t ticks_of(std::uint64_t ns) {
  const std::uint64_t ticks = ns * (tsc_rate().ticks_per_second / 1'000) / 1'000'000;
  return ticks == 0 ? 1 : ticks;
}

std::uint64_t ticks_about(std::uint64_t ns) {
  constexpr int kTries = 2'000;  // a microsecond each
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t rate = ticks_per_us(g_arena.header(), 4'000);
    if (rate == 0) continue;
    const std::uint64_t ticks = ns / 1'000 * rate + ns % 1'000 * rate / 1'000;
    return ticks == 0 ? 1 : ticks;
  }
  return ticks_of(ns);
}

}  // namespace karst::runtime
