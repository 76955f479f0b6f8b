// The trace's clock: the TSC's rate, and readings of it beside the kernel's clocks.
#pragma once
#include "reader/model.h"

namespace karst::collect {

/// The TSC now, with CLOCK_MONOTONIC_RAW and CLOCK_REALTIME at the same moment; the best of several readings.
reader::ClockPair read_clock_pair();

/// The TSC's rate and how it is known: from the kernel (the page that perf_event_open maps gives the factor that the
/// kernel itself uses), or else from the two pairs that are farthest apart.
reader::Clock make_clock(std::vector<reader::ClockPair> pairs);

}  // namespace karst::collect
