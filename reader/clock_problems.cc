// SPDX-License-Identifier: MIT
// Compares neighbouring readings: each pair of them gives the trace's clock and the kernel's a stretch of time.
#include "reader/clock_problems.h"

#include <algorithm>
#include <string>

namespace karst::reader {
namespace {

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

std::string milliseconds(std::uint64_t ns) {
  const std::string thousandths = std::to_string(ns / 1000 % 1000);
  return std::to_string(ns / 1'000'000) + "." + std::string(3 - thousandths.size(), '0') + thousandths + " ms";
}

}  // namespace

std::vector<std::string> clock_problems(const Clock& clock) {
  std::vector<ClockPair> pairs = clock.pairs;
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.monotonic_raw_ns < b.monotonic_raw_ns; });
  std::uint64_t backwards = 0;
  std::uint64_t jump = 0;  // the largest of each, in ns
  std::uint64_t alone = 0;
  for (std::size_t i = 1; i < pairs.size(); ++i) {
    const ClockPair& a = pairs[i - 1];
    const ClockPair& b = pairs[i];
    const std::uint64_t raw = b.monotonic_raw_ns - a.monotonic_raw_ns;
    const std::uint64_t unsure = std::uint64_t{a.uncertainty_ns} + b.uncertainty_ns;
    if (b.ticks < a.ticks) {
      const std::uint64_t back = clock.to_ns(a.ticks - b.ticks);
      if (back > unsure) backwards = std::max(backwards, back);
      continue;
    }
    const std::uint64_t off = distance(clock.to_ns(b.ticks - a.ticks), raw);
    if (off > kClockTolerance + raw / 1000 + unsure) jump = std::max(jump, off);
    // A reading without the wall clock has none to compare.
    if (a.realtime_ns == 0 || b.realtime_ns == 0) continue;
    const std::uint64_t wall_off = distance(b.realtime_ns, a.realtime_ns + raw);
    if (wall_off > kWallTolerance + raw / 1000) alone = std::max(alone, wall_off);
  }
  std::vector<std::string> problems;
  if (backwards != 0)
    problems.push_back("the processor's counter went backwards by " + milliseconds(backwards) +
                       ": times are wrong (a virtual machine that moved, or a counter that wrapped)");
  if (jump != 0)
    problems.push_back(
        "the processor's counter and the kernel's clock differ by " + milliseconds(jump) +
        " between two readings: times may be wrong (was the machine suspended, or a virtual one moved?)");
  if (alone != 0)
    problems.push_back("the wall clock moved by " + milliseconds(alone) +
                       " against the trace's clock: the machine was suspended, or its clock was set");
  return problems;
}

}  // namespace karst::reader
