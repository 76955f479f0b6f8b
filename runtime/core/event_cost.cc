#include "runtime/core/event_cost.h"

#include <time.h>

#include "runtime/core/clock.h"
#include "runtime/core/memory.h"
#include "runtime/core/state.h"
#include "runtime/core/syscalls.h"
#include "runtime/hooks/hooks.h"
#include "runtime/hooks/instrument.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::uint32_t kPairs = 100;  // fit into a block
constexpr int kRounds = 6;
constexpr std::uint64_t kNotMeasured = 12 * kEventCostUnit;

alignas(kBlockSize) char g_scratch[kBlockSize];
std::uint64_t g_cost = kNotMeasured;
std::uint64_t g_ticks_per_1024ns = 2048;
std::uint64_t g_by_tid;  // 0: not measured

std::uint64_t now() { return __builtin_ia32_rdtsc(); }

/// The program's calls meet hooks that are not in the nearest cache, blocks that have to be brought in, and a full
/// store buffer; and every 504th one takes a block. Of Lua and SQLite it was a third more than of the loop.
constexpr std::uint64_t in_programs(std::uint64_t cost) { return cost + cost / 3; }

/// Ticks of the fastest round.
std::uint64_t time_events(Hook enter, Hook exit) {
  const sys::SignalsBlocked guard;
  ThreadState state{};
  state.epoch = static_cast<std::uint32_t>(now() >> 32) & ~0xffU;
  state.live = 1;
  ThreadState* const before = karst_state;
  std::uint64_t best = ~std::uint64_t{0};
  for (int i = 0; i < kRounds; ++i) {
    state.cursor = reinterpret_cast<std::uintptr_t>(g_scratch) + kBlockHeaderSize;
    karst_state = &state;
    const std::uint64_t begin = now();
    karst_make_events(enter, exit, kPairs);
    const std::uint64_t ticks = now() - begin;
    karst_state = before;
    if (ticks < best) best = ticks;
  }
  return best;
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

}  // namespace

void measure_event_cost() {
  // The scratch block would be left in the moment when the upper bits of the time change, which they do for 7 minutes.
  constexpr std::uint64_t kSoon = std::uint64_t{1} << 32;
  if ((now() & kEventTickMask) > kEventTickMask - kSoon) return;
  const Hook enter = load(karst_calls_enter);
  const Hook exit = load(karst_calls_exit);
  if (enter == karst_hook_trace_by_tid || enter == karst_hook_discard) return;
  const std::uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC_RAW);
  const std::uint64_t begin = now();
  const std::uint64_t ticks = time_events(enter, exit);
  const std::uint64_t all = now() - begin;
  const std::uint64_t all_ns = clock_ns(CLOCK_MONOTONIC_RAW) - begin_ns;
  if (all == 0 || all_ns == 0) return;
  g_ticks_per_1024ns = all * 1024 / all_ns;
  if (g_ticks_per_1024ns == 0) g_ticks_per_1024ns = 1;
  const std::uint64_t cost = in_programs(ticks * 1024 / g_ticks_per_1024ns * kEventCostUnit / (2 * kPairs));
  // A virtual machine that stops in between tells nothing.
  if (cost != 0 && cost < 100 * kNotMeasured) g_cost = cost;
}

std::uint64_t cost_of_event() {
  const Hook enter = load(karst_calls_enter);
  if (enter == karst_hook_discard) return 0;
  if (enter != karst_hook_trace_by_tid) return g_cost;
  if (g_by_tid == 0) g_by_tid = time_by_tid();
  return g_by_tid;
}

std::uint64_t rough_ticks_per_1024ns() { return g_ticks_per_1024ns; }

}  // namespace karst::runtime
