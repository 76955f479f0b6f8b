// SPDX-License-Identifier: MIT
// The clocks: what events are stamped with, and readings of the kernel's beside the TSC.
//
// Events carry ticks of the TSC, which a hook reads itself; under clock=thread a thread of the runtime's own stores the
// TSC into karst_clock every so often, and hooks load that: a quarter of the time, and no order among the calls of a
// thread is lost, as the word never goes back. Whatever stamps anything that is compared with events takes
// event_time().
//
// While no thread records anything for some 50 ms, the clock thread sleeps. The word then is of an epoch that no block
// has, so the next hook comes by the slow path, which sets the time and wakes it: sleeping costs hooks nothing.
#pragma once
#include <cstdint>

#include "arch/cpu.h"
#include "format/arena.h"

namespace karst::runtime {

/// A cache line of its own: it is written ten million times a second.
struct alignas(64) ClockLine {
  std::uint64_t ticks;  ///< kClockSleeps: the clock thread sleeps
  std::uint64_t unused[7];
};
inline constexpr std::uint64_t kClockSleeps = ~std::uint64_t{0};

extern "C" {
extern __attribute__((visibility("hidden"))) ClockLine karst_clock;
/// Not 0: the clock thread's time stamps events.
extern __attribute__((visibility("hidden"))) std::uint32_t karst_clock_on;
}
/// The futex that the clock thread sleeps on while this is 1.
extern std::uint32_t g_clock_asleep;

/// The time for an event, unless it is kClockSleeps: then it is no time, and of no block's epoch.
inline std::uint64_t stamp() {
  if (__atomic_load_n(&karst_clock_on, __ATOMIC_ACQUIRE) == 0) [[likely]]
    return arch::time_stamp();
  return __atomic_load_n(&karst_clock.ticks, __ATOMIC_ACQUIRE);
}

/// The present time by the clock of events; wakes the clock thread if it sleeps. Any thread, any context.
std::uint64_t event_time();

/// Time of a clock (CLOCK_MONOTONIC_RAW and its like) in nanoseconds.
std::uint64_t clock_ns(int clock);

/// Enters a paired reading, the closest of a few, into the header: the system call's own time is the uncertainty.
void note_start_time(format::ArenaHeader& header);

/// Enters a later reading, for whoever finds the arena when the process is gone. One thread of the process alone.
void note_later_time(format::ArenaHeader& header);

/// How many ticks of the TSC a microsecond has, to one part in `parts`, measured since the process's start (`header`);
/// 0 while that cannot be said yet, for a hundredth in the first fifth of a millisecond or so. Never waits, unlike
/// tsc_rate() (timing/rate.h): the first perf event of a system takes the kernel up to 100 ms.
std::uint64_t ticks_per_us(const format::ArenaHeader& header, std::uint64_t parts = 100);

}  // namespace karst::runtime
