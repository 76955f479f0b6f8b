// SPDX-License-Identifier: MIT
#include "runtime/snapshots/signal.h"

#include <errno.h>

#include "arch/cpu.h"
#include "runtime/maintenance/control.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/snapshots/snapshot.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

extern "C" int __sigaction(int number, const struct sigaction* action, struct sigaction* before);

namespace karst::runtime {
namespace {

int g_signal;
char g_directory[sizeof(Options::snapshots)];

// Signals that came, and those that were answered. Several at once may get one file, as signals do themselves.
std::uint32_t g_came;
std::uint32_t g_answered;
std::uint32_t g_pid;

/// The program's own action. Two places: one is read while the other one is written.
struct Own {
  struct sigaction actions[2];
  std::uint32_t current;
};
Own g_own;

void answer() {
  const std::uint64_t now = arch::time_stamp();
  const int wrong = save_numbered_snapshot({0, now, format::MomentKind::kSignal, "signal"}, g_directory);
  static std::uint32_t s_said;
  if (wrong != 0 && exchange_if(s_said, 0U, 1U))
    Message()
        .text("the snapshot asked for by a signal cannot be written (error ")
        .number(static_cast<std::uint64_t>(-wrong))
        .text(")");
}

bool is_pending() { return load(g_answered) != load(g_came); }

void answer_pending() {
  store(g_answered, load(g_came));
  answer();
}

void handle(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (own_arena()) {
    const auto pid = static_cast<std::uint32_t>(sys::getpid());
    if (pid != load(g_pid)) {  // a forked child: its parent's signals are not its own
      store(g_answered, load(g_came));
      store(g_pid, pid);
    }
    __atomic_add_fetch(&g_came, 1, __ATOMIC_ACQ_REL);
    if (!do_in_thread({is_pending, answer_pending})) answer_pending();
  }
  errno = error;
  const struct sigaction own = g_own.actions[load(g_own.current) & 1];
  if ((own.sa_flags & SA_SIGINFO) != 0) {
    if (own.sa_sigaction != nullptr) own.sa_sigaction(number, info, context);
  } else if (own.sa_handler != SIG_DFL && own.sa_handler != SIG_IGN) {
    if ((own.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
      struct sigaction none {};
      change_own_action(&none, nullptr);
    }
    own.sa_handler(number);
  }
}

/// Ours, with what the program wants of its own.
bool install(const struct sigaction& own) {
  const bool has_own = (own.sa_flags & SA_SIGINFO) != 0 || (own.sa_handler != SIG_DFL && own.sa_handler != SIG_IGN);
  struct sigaction ours {};
  ours.sa_sigaction = handle;
  ours.sa_mask = own.sa_mask;
  // Calls that a signal interrupts are to go on as if there had been none, unless the program has said otherwise.
  ours.sa_flags = SA_SIGINFO | (has_own ? own.sa_flags & ~static_cast<int>(SA_RESETHAND) : SA_RESTART | SA_ONSTACK);
  return __sigaction(g_signal, &ours, nullptr) == 0;
}

}  // namespace

void take_signal(const Options& options) {
  if (options.signal == 0) return;
  copy(g_directory, options.snapshots, sizeof g_directory);
  g_pid = static_cast<std::uint32_t>(sys::getpid());
  struct sigaction before {};
  __sigaction(options.signal, nullptr, &before);
  g_own.actions[0] = before;
  g_signal = options.signal;
  if (!install(before)) {
    Message().text("signal ").number(static_cast<std::uint64_t>(options.signal)).text(" cannot be taken for snapshots");
    g_signal = 0;
    return;
  }
}

int taken_signal() { return g_signal; }

int change_own_action(const struct sigaction* action, struct sigaction* before) {
  const std::uint32_t current = load(g_own.current);
  const struct sigaction was = g_own.actions[current & 1];
  if (action != nullptr) {
    const struct sigaction next = *action;  // it may be the same object as `before`
    g_own.actions[(current + 1) & 1] = next;
    store(g_own.current, current + 1);
    if (!install(next)) return -1;
  }
  if (before != nullptr) *before = was;
  return 0;
}

}  // namespace karst::runtime
