// SPDX-License-Identifier: MIT
// The clock thread of --clock=thread (clock/clock.h says what it is for).
#pragma once
#include <cstdint>

#include "format/options.h"

namespace karst::runtime {

/// Returns when events get a later time than this, so that what the calling thread does from now on is told from what
/// it did before. At most a tenth of a second: the clock thread may have to wait for a CPU.
void wait_for_later_than(std::uint64_t ticks);

/// At start, with an arena and before the first event: makes the clock thread. False, with a message, when it cannot be
/// had: on one CPU, or because the system allows no thread. Then the TSC stamps events.
///
/// Each time that the word is stored, every CPU that records has to fetch the line anew: from 20 ns among near cores to
/// 250 ns among far ones, in which its hooks wait. A clock that `adapts` measures how long its own stores take, and
/// stores no more often than costs a thirtieth of the time; but at least every kLongestAdaptedNs.
bool start_clock_thread(format::ClockChoice choice);
/// In a forked child with an arena of its own, before its first event: a clock thread of its own, else the TSC.
void renew_clock_thread();
/// For what a process with more than one thread is refused: no clock thread from now on. Waits until it has gone.
void end_clock_thread();

}  // namespace karst::runtime
