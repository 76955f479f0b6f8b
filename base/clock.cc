// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <dlfcn.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "arch/cpu.h"
#include "format/trace.h"

namespace karst {
namespace {

/// Ticks a second as the kernel has them; 0 when perf events are not allowed or the TSC is not the kernel's clock.
std::uint64_t rate_from_perf() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.size = sizeof attributes;
  attributes.exclude_kernel = 1;
  const auto fd = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) return 0;
  const auto page_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, page_size, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) return 0;
  const auto& control = *static_cast<const volatile perf_event_mmap_page*>(page);
  std::uint64_t rate = 0;
  if (control.cap_user_time != 0 && control.time_mult != 0) {
    // ns = ticks * mult >> shift
    rate = static_cast<std::uint64_t>((static_cast<unsigned __int128>(1'000'000'000U) << control.time_shift) /
                                      control.time_mult);
  }
  munmap(page, page_size);
  return rate;
}

constexpr std::uint64_t kUnknownRate = 1'000'000'000;

/// Some processor's TSC may count so fast. Readings that a process made may be of any kind.
bool is_possible(std::uint64_t ticks_per_second) {
  return ticks_per_second >= 1'000'000 && ticks_per_second <= 1'000'000'000'000;
}

std::uint64_t rate_from_pairs(const std::vector<ClockPair>& pairs) {
  const auto [first, last] =
      std::minmax_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
  if (first == pairs.end() || last->monotonic_raw_ns <= first->monotonic_raw_ns) return kUnknownRate;
  const unsigned __int128 rate = static_cast<unsigned __int128>(last->ticks - first->ticks) * 1'000'000'000U /
                                 (last->monotonic_raw_ns - first->monotonic_raw_ns);
  return rate <= ~std::uint64_t{0} && is_possible(static_cast<std::uint64_t>(rate)) ? static_cast<std::uint64_t>(rate)
                                                                                    : kUnknownRate;
}

}  // namespace

std::uint64_t clock_ns(clockid_t clock) {
  // libc's own, whatever is preloaded before it (libfaketime): the process's times are the kernel's, and so must these.
  static auto* const kRead = [] {
    void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void* const own = libc != nullptr ? dlsym(libc, "clock_gettime") : nullptr;
    return own != nullptr ? reinterpret_cast<int (*)(clockid_t, timespec*)>(own) : &clock_gettime;
  }();
  timespec t{};
  kRead(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

ClockPair read_clock_pair() {
  ClockPair best;
  std::uint64_t best_width = ~std::uint64_t{0};
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = arch::time_stamp();
    const std::uint64_t raw = clock_ns(CLOCK_MONOTONIC_RAW);
    const std::uint64_t after = arch::time_stamp();
    if (after - before >= best_width) continue;
    best_width = after - before;
    best = {before + best_width / 2, raw, clock_ns(CLOCK_REALTIME), static_cast<std::uint32_t>(best_width / 2)};
  }
  return best;
}

Clock make_clock(std::vector<ClockPair> pairs, bool ours) {
  Clock clock;
  clock.ticks_per_second = 0;
  if (ours || rate_from_pairs(pairs) == kUnknownRate) clock.ticks_per_second = rate_from_perf();
  clock.rate_source = static_cast<std::uint32_t>(format::RateSource::kPerf);
  if (clock.ticks_per_second == 0) {
    clock.ticks_per_second = rate_from_pairs(pairs);
    clock.rate_source = static_cast<std::uint32_t>(format::RateSource::kPairs);
  }
  // Uncertainties were taken in ticks, before the rate was known.
  for (ClockPair& pair : pairs) pair.uncertainty_ns = static_cast<std::uint32_t>(clock.to_ns(pair.uncertainty_ns) + 1);
  clock.pairs = std::move(pairs);
  return clock;
}

}  // namespace karst
