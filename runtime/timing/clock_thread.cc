// SPDX-License-Identifier: MIT
// The clock thread: stores the time into one cache line that hooks read in place of the TSC. It sleeps while nothing is
// recorded, with an impossible time in the line, so that the next hook takes its slow path and wakes it.
#include "runtime/timing/clock_thread.h"

#include <sched.h>

#include "arch/cpu.h"
#include "runtime/clock/clock.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/own_process.h"
#include "runtime/system/syscalls.h"
#include "runtime/timing/rate.h"

namespace karst::runtime {

namespace {

constexpr std::uint64_t kLookNs = 10'000'000;    // how often it looks whether anything is recorded
constexpr std::uint32_t kIdleLooks = 5;          // so often in vain, and it sleeps
constexpr std::uint64_t kMostLooksWaited = 10;   // for the clock to go on, where many spin on its CPU
constexpr std::uint64_t kCrowdedNs = 1'000'000;  // waited so long for its CPU: somebody else wants it, too
constexpr std::uint32_t kCpuWords = 128;
constexpr std::uint64_t kLongestAdaptedNs = 2'000;
constexpr std::uint64_t kPeriodsPerPassing = 32;  // waiting for the line may take so small a part of the time

OwnProcess g_process;
std::uint32_t g_end;
std::uint64_t g_period;   // ticks; the shortest if it adapts
std::uint64_t g_longest;  // g_period if it stays as it is
std::uint64_t g_look;
std::uint64_t g_crowded;

std::uint64_t tsc() { return arch::time_stamp(); }

/// CPUs that the calling thread may run on.
class Cpus {
 public:
  Cpus() {
    const long size = sys::call(SYS_sched_getaffinity, 0, sizeof bits_, sys::word(bits_));
    known_ = size > 0;
    for (const std::uint64_t word : bits_)
      for (std::uint64_t bits = word; bits != 0; bits &= bits - 1) ++count_;
  }
  std::uint32_t count() const { return known_ ? count_ : 2; }  // not told: let us try

  /// Keeps the calling thread on the next of them, downwards: the first ones have most of the interrupts. Elsewhere its
  /// word would have to follow it; and a thread that moves stands still for a moment.
  void pin_to_next() {
    if (!known_ || count_ < 2) return;
    do {
      at_ = (at_ == 0 ? kCpuWords * 64 : at_) - 1;
    } while ((bits_[at_ / 64] >> at_ % 64 & 1) == 0);
    std::uint64_t one[kCpuWords] = {};
    one[at_ / 64] = std::uint64_t{1} << at_ % 64;
    sys::call(SYS_sched_setaffinity, 0, sizeof one, sys::word(one));  // where that is refused it stays as it was
  }

 private:
  std::uint64_t bits_[kCpuWords] = {};
  std::uint32_t count_ = 0;
  std::uint32_t at_ = 0;  // first the last one, as it goes round
  bool known_ = false;
};

/// How long it takes until a store into the line is seen, which is as long as somebody else's CPU takes to give the
/// line up: about what that CPU then waits for it. In ticks, a sliding mean.
class Passing {
 public:
  /// Before anything records: what a store takes that nobody waits for.
  Passing() {
    for (int i = 0; i < 64; ++i) {
      const std::uint64_t begin = tsc();
      store(karst_clock.ticks, begin);
      const std::uint64_t took = since(begin);
      if (took < alone_) alone_ = took;
    }
  }

  /// Behind a store, at whose begin the time was `begin`.
  void stored(std::uint64_t begin) {
    const std::uint64_t took = since(begin);
    const std::uint64_t passing = took <= alone_ ? 0 : took - alone_;
    sum_ += (passing < g_longest ? passing : g_longest) - sum_ / kMeanOf;  // longer: it had no processor meanwhile
  }

  std::uint64_t mean() const { return sum_ / kMeanOf; }

 private:
  static constexpr std::uint64_t kMeanOf = 1'024;

  static std::uint64_t since(std::uint64_t begin) { return arch::time_stamp_behind_stores() - begin; }

  std::uint64_t alone_ = ~std::uint64_t{0};
  std::uint64_t sum_ = 0;
};

/// Until somebody records again.
void sleep_until_woken() {
  store(g_clock_asleep, 1U);
  store(karst_clock.ticks, kClockSleeps);
  while (load(g_clock_asleep) == 1 && load(g_end) == 0)
    sys::call(SYS_futex, sys::word(&g_clock_asleep), FUTEX_WAIT_PRIVATE, 1, 0);
}

void tick() {
  Cpus cpus;
  cpus.pin_to_next();
  std::uint64_t& longest = g_arena.header().clock_longest_ticks;
  std::uint64_t& longest_period = g_arena.header().clock_period_ticks;
  std::uint64_t period = g_period;
  Passing passing;
  std::uint64_t last = tsc();
  std::uint64_t next_look = last + g_look;
  std::uint64_t progress = 0;
  std::uint32_t idle = 0;
  bool crowded = false;
  while (load(g_end) == 0) {
    const std::uint64_t ticks = tsc();
    store(karst_clock.ticks, ticks);
    if (g_longest != g_period) passing.stored(ticks);  // it does not adapt: nobody asks
    if (ticks - last > load(longest)) store(longest, ticks - last);
    crowded = crowded || ticks - last > g_crowded;
    last = ticks;
    if (ticks >= next_look) {
      if (crowded) cpus.pin_to_next();
      crowded = false;
      const std::uint64_t wanted = passing.mean() * kPeriodsPerPassing;
      period = wanted < g_period ? g_period : wanted > g_longest ? g_longest : wanted;
      if (period > load(longest_period)) store(longest_period, period);
      next_look = ticks + g_look;
      const std::uint64_t before = progress;
      progress = recording_progress();
      idle = progress == before ? idle + 1 : 0;
      if (idle >= kIdleLooks) {
        sleep_until_woken();
        idle = 0;
        last = tsc();
        next_look = last + g_look;
      }
    }
    while (tsc() - ticks < period) arch::pause();
  }
}

bool make_thread() {
  store(g_end, 0U);
  store(g_clock_asleep, 0U);
  store(karst_clock.ticks, tsc());
  if (!g_process.start(tick, "karst-clock")) return false;
  store(karst_clock_on, 1U);
  g_arena.header().clock_period_ticks = g_period;
  g_arena.header().clock_longest_ticks = 0;
  return true;
}

}  // namespace

void wait_for_later_than(std::uint64_t ticks) {
  if (load(karst_clock_on) == 0) return;
  const std::uint64_t begin = tsc();
  while (event_time() == ticks && tsc() - begin < kMostLooksWaited * g_look) sys::call(SYS_sched_yield);
}

bool start_clock_thread(format::ClockChoice choice) {
  const char* why = nullptr;
  if (Cpus().count() < 2) {
    why = "one CPU alone is there, which the clock thread would take from the program";
  } else {
    g_period = ticks_about(choice.period_ns);
    g_longest = choice.adapts ? ticks_about(kLongestAdaptedNs) : g_period;
    g_look = ticks_about(kLookNs);
    g_crowded = ticks_about(kCrowdedNs);
    if (!make_thread()) why = "the system allows no further thread";
  }
  if (why != nullptr) Message().text("clock=thread: ").text(why).text("; the processor's clock (tsc) is used");
  return why == nullptr;
}

void renew_clock_thread() {
  if (load(karst_clock_on) == 0) return;
  g_process.forget();
  if (Cpus().count() >= 2 && make_thread()) return;
  // A hook that is under way still stamps by the line.
  store(karst_clock.ticks, tsc());
  store(karst_clock_on, 0U);
  g_arena.header().clock_period_ticks = 0;
  choose_hooks();
}

void end_clock_thread() {
  if (load(karst_clock_on) == 0) return;
  const sys::SignalsBlocked guard;
  store(g_end, 1U);
  store(g_clock_asleep, 0U);
  sys::call(SYS_futex, sys::word(&g_clock_asleep), FUTEX_WAKE_PRIVATE, 1);
  g_process.wait_until_gone();
  store(karst_clock.ticks, tsc());
  store(karst_clock_on, 0U);
  choose_hooks();
}

}  // namespace karst::runtime
