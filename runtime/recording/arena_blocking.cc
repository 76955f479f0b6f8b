// SPDX-License-Identifier: MIT
// Where nothing may be lost (`karst run --all --blocking`): a thread whose next block holds what has not been taken
// waits until it is. Who takes may be killed or stop at any time, so a wait in which nothing is taken ends it for good.
#include <linux/futex.h>
#include <time.h>

#include "runtime/clock/clock.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread_parts.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr long kLookEveryNs = 20'000'000;
constexpr std::uint32_t kLooksInVain = 250;  // one after the other: 5 s
constexpr std::uint32_t kMostLooks = 3000;  // for one block: others may write to the word that says something was taken

__attribute__((noinline, cold)) void say_nobody_takes() {  // apart: its buffer needs stack
  Message().text("nobody takes what is recorded: from here on the oldest is overwritten");
}

/// Until it is no more what was seen, or a while has passed, or a signal has come.
void wait_for_change(const std::uint32_t& word, std::uint32_t seen) {
  const timespec pause{0, kLookEveryNs};
  sys::call(SYS_futex, sys::word(&word), FUTEX_WAIT, seen, sys::word(&pause));
}

}  // namespace

/// Until something more is taken. Any context; a handler that interrupts it may do the same.
void Arena::wait_for_taking(WaitForTaking& wait) {
  ArenaControl& c = control();
  const std::uint64_t begin = arch::time_stamp();
  const std::uint32_t seen = load(c.taken);
  __atomic_add_fetch(&c.waits, 1, __ATOMIC_RELAXED);
  for (std::uint32_t in_vain = 0; load(c.taken) == seen && is_blocking(); ++in_vain) {
    if (g_no_system_calls || in_vain == kLooksInVain || wait.looks == kMostLooks) {
      store(waits_no_more_, true);
      if (exchange_if(c.blocking, 1U, 0U) && !g_no_system_calls) say_nobody_takes();
      break;
    }
    ++wait.looks;
    wait_for_change(c.taken, seen);
  }
  const std::uint64_t ticks = arch::time_stamp() - begin;
  wait.ticks += ticks;
  __atomic_add_fetch(&c.waited_ticks, ticks, __ATOMIC_RELAXED);
}

}  // namespace karst::runtime
