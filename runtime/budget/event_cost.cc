// SPDX-License-Identifier: MIT
// Times the hooks themselves, in memory of their own, in a few rounds; the fastest one counts. Of hooks that cannot be
// tried so it times what they consist of. Between the events of a call lies some work, as in programs: processors
// overlap it with what hooks do, so that an event among work costs less than one after the other does. How much they
// overlap differs: 4.4 to 7.4 ns an event in Debian's lua5.4, git, python3 and cc1, where the loops here say 4.2 with
// work and 9.5 without. So a budget counts with the middle of both.
#include "runtime/budget/event_cost.h"

#include <time.h>

#include "arch/cpu.h"
#include "format/trace.h"
#include "runtime/clock/clock.h"
#include "runtime/modules/hooks.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/state.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::uint32_t kPairs = 40;  // fit into a block
constexpr std::uint32_t kBody = 32;   // multiplications, of 3 to 4 cycles each
constexpr std::uint32_t kNoBody = 1;  // as few as there can be
constexpr int kRounds = 8;
constexpr std::uint64_t kNotMeasured = 12 * kEventCostUnit;

alignas(kBlockSize) char g_scratch[kBlockSize];
std::uint64_t g_ticks;   // of a round's events, among work; 0: not measured
std::uint64_t g_bare;    // of them without work
std::uint64_t g_inside;  // of them between the stamps of the calls
std::uint64_t g_ticks_by_clock_thread;
std::uint64_t g_cost;  // of one; 0: not yet known
std::uint64_t g_cost_by_clock_thread;
std::uint64_t g_cost_by_tid;

std::uint64_t now() { return arch::time_stamp(); }

/// Ticks of the fastest round. `work` is done with a state of its own.
template <typename Work>
std::uint64_t fastest(Work work) {
  std::uint64_t best = ~std::uint64_t{0};
  for (int i = 0; i < kRounds; ++i) {
    const std::uint64_t begin = now();
    work();
    const std::uint64_t ticks = now() - begin;
    if (ticks < best) best = ticks;
  }
  return best;
}

/// The sum of the calls' durations as the block has them.
std::uint64_t recorded_time() {
  const auto* event = reinterpret_cast<const Event*>(g_scratch + kBlockHeaderSize);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < 2 * kPairs; i += 2) sum += event_ticks(event[i + 1], 0) - event_ticks(event[i], 0);
  return sum;
}

struct Round {
  std::uint64_t ticks;   // of its events
  std::uint64_t inside;  // of them between the stamps of the calls
};

Round time_events(std::uint32_t body) {
  const sys::SignalsBlocked guard;
  ThreadState state{};
  state.epoch = static_cast<std::uint32_t>(now() >> 32) & ~0xffU;
  state.live = 1;
  ThreadState* const before = karst_state;
  std::uint64_t recorded = ~std::uint64_t{0};
  const std::uint64_t with = fastest([&] {
    state.cursor = reinterpret_cast<std::uintptr_t>(g_scratch) + kBlockHeaderSize;
    karst_state = &state;
    karst_make_events(karst_hook_trace, karst_hook_trace, kPairs, body);
    karst_state = before;
    if (const std::uint64_t sum = recorded_time(); sum < recorded) recorded = sum;
  });
  const std::uint64_t bodies = fastest([body] { karst_make_bodies(nullptr, nullptr, kPairs, body); });
  Round round{with > bodies ? with - bodies : 1, recorded > bodies ? recorded - bodies : 0};
  if (round.inside > round.ticks) round.inside = round.ticks;
  return round;
}

/// What the clock thread's hooks do not do. They themselves cannot be tried: they may want to wake it.
std::uint64_t time_readings() {
  return fastest([] {
    for (std::uint32_t i = 0; i < 2 * kPairs; ++i) now();
  });
}

/// Hooks that ask the kernel for the thread's id make three system calls for each event.
std::uint64_t time_by_tid() {
  constexpr int kCalls = 16;
  const std::uint64_t begin = clock_ns(CLOCK_MONOTONIC_RAW);
  for (int i = 0; i < kCalls; ++i) {
    const sys::SignalsBlocked guard;
    sys::gettid();
  }
  return (clock_ns(CLOCK_MONOTONIC_RAW) - begin) * kEventCostUnit / kCalls + kNotMeasured;
}

/// In 1/kEventCostUnit ns, of the ticks that all events of a round took.
std::uint64_t cost_of(std::uint64_t ticks, std::uint64_t per_us) {
  if (ticks == 0) return kNotMeasured;
  const std::uint64_t cost = ticks * kEventCostUnit * 1000 / per_us / (std::uint64_t{2} * kPairs);
  // A virtual machine that stops in between tells nothing.
  return cost == 0 || cost > 100 * kNotMeasured ? kNotMeasured : cost;
}

}  // namespace

void measure_event_cost() {
  const std::uint64_t readings = time_readings();
  // The scratch block would be left in the moment when the upper bits of the time change, every few minutes. About then
  // events cost half of what they consist of, two readings of the clock; the other half they overlap with work.
  constexpr std::uint64_t kSoon = std::uint64_t{1} << 32;
  if ((now() & kEventTickMask) > kEventTickMask - kSoon) {
    g_ticks = readings / 2;
    g_bare = readings;
    g_inside = readings / 4;
  } else {
    const Round among_work = time_events(kBody);
    g_ticks = among_work.ticks;
    g_inside = among_work.inside;
    g_bare = time_events(kNoBody).ticks;
  }
  g_ticks_by_clock_thread = g_ticks > readings + g_ticks / 2 ? g_ticks - readings : g_ticks / 2;
}

void publish_call_cost() {
  const Hook enter = recording_hook();
  std::uint64_t ticks = 0, inside = 0, off_by = 0;
  if (enter == karst_hook_trace) {
    ticks = g_ticks;
    inside = g_inside;
    off_by = g_bare;
  } else if (enter == karst_hook_trace_clock) {
    // The stored time knows nothing of where in a hook it is read.
    ticks = g_ticks_by_clock_thread;
    inside = ticks / 2;
    off_by = 2 * ticks;
  }
  // Where the code around a call waits for other work, tracing costs nothing; among nothing else it costs the most. In
  // both cases the processor may begin a reading of the clock as much earlier than what stands before it.
  const auto of_call = [](std::uint64_t sum) { return static_cast<std::uint32_t>(sum * kCallCostUnit / kPairs); };
  g_arena.header().call_cost = of_call(ticks);
  g_arena.header().call_cost_inside = of_call(inside);
  g_arena.header().call_cost_off_by = of_call(off_by > ticks ? off_by : ticks);
}

std::uint64_t cost_of_event() {
  const Hook enter = recording_hook();
  if (g_cost == 0) {
    const std::uint64_t per_us = ticks_per_us(g_arena.header());
    if (per_us == 0) return kNotMeasured;
    g_cost = cost_of((g_ticks + (g_bare > g_ticks ? g_bare : g_ticks)) / 2, per_us);
    g_cost_by_clock_thread = cost_of(g_ticks_by_clock_thread, per_us);
  }
  if (enter == karst_hook_trace) return g_cost;
  if (enter == karst_hook_trace_clock) return g_cost_by_clock_thread;
  if (enter != karst_hook_trace_by_tid) return 0;  // nothing is recorded, or calls are counted
  if (g_cost_by_tid == 0) g_cost_by_tid = time_by_tid();
  return g_cost_by_tid;
}

}  // namespace karst::runtime
