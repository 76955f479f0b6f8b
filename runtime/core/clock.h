// Readings of the kernel's clocks beside the TSC, by system calls.
#pragma once
#include <cstdint>

#include "format/arena.h"

namespace karst::runtime {

/// Time of a clock (CLOCK_MONOTONIC_RAW and its like) in nanoseconds.
std::uint64_t clock_ns(int clock);

/// Enters a paired reading, the closest of a few, into the header: the system call's own time is the uncertainty.
void note_start_time(format::ArenaHeader& header);

}  // namespace karst::runtime
