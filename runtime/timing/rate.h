// SPDX-License-Identifier: MIT
// The TSC's rate, for what the process writes or says about itself. Hooks do not need it.
#pragma once
#include <cstdint>

#include "format/trace.h"

namespace karst::runtime {

struct Rate {
  std::uint64_t ticks_per_second;
  format::RateSource source;
};

/// From the kernel where it tells, else measured since the process began (over 10 ms at least: early on it may sleep
/// for as long). Requires an arena. Signal-safe; makes system calls the first time, unless they are forbidden to us.
Rate tsc_rate();

/// The TSC is constant and the same on all CPUs, as far as kernel and processor know (format/clock_source.h). Reads a
/// file. Signal-safe.
bool is_counter_trusted();

/// Ticks of the TSC in so much time. Makes system calls.
std::uint64_t ticks_of(std::uint64_t ns);
/// The same to one in a thousand, at start: it waits half a millisecond or so, where ticks_of() may take the
/// kernel 100 ms (tsc_rate()).
std::uint64_t ticks_about(std::uint64_t ns);

}  // namespace karst::runtime
