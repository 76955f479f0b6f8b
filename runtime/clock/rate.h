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

}  // namespace karst::runtime
