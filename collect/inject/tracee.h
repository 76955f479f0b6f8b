// SPDX-License-Identifier: MIT
// One thread of another process under ptrace. It is seized: no signal is sent, and if karst dies the kernel lets it go
// on where it stands.
//
// ptrace takes a number, which may be another process's thread by then. Once it is seized it keeps its number: whatever
// happens to it, it stays until its tracer has waited for it. So it is looked at then whether it is the process's, by
// what the kernel says of the process that is held, and before it is even asked to stop.
//
// Who traces is a thread, not a process. Where that thread ends the kernel lets go of all that it traces, also of what
// has not stopped and what was none of the process's, of which no request would do that. So all of this is done in
// as_tracer().
#pragma once
#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include "base/held_process.h"

namespace karst::collect {

using SteadyClock = std::chrono::steady_clock;

/// In a system call that begins, or ends.
struct AtSystemCall {
  bool begins = false;
  std::uint64_t number = 0;  ///< these two if it begins
  std::uint64_t arguments[6] = {};
};

/// What the kernel has in rax for a system call that it begins anew unless a handler runs; not in any header.
inline constexpr std::int64_t kRestartNoHand = -514;

/// What act() returns, done in a thread that ends with it.
template <typename Act>
auto as_tracer(const Act& act) {
  std::optional<decltype(act())> done;
  std::thread([&] { done.emplace(act()); }).join();
  return std::move(*done);
}

class Tracee {
 public:
  /// Check with `attached()`; if not, errno says why. ESRCH: the process has no such thread, or not any more.
  /// The process outlives this.
  Tracee(const HeldProcess& process, pid_t thread);
  /// It goes on. If it is about to stop, it does so first: else a system call of it would end early. In uninterruptible
  /// sleep it goes on when the thread that traces ends.
  ~Tracee() { let_go(); }
  void let_go();
  Tracee(Tracee&& other) noexcept;
  Tracee& operator=(Tracee&&) = delete;

  bool attached() const { return attached_; }
  bool stopped() const { return stopped_; }
  pid_t thread() const { return thread_; }
  /// Asks it to stop, without waiting for that.
  void interrupt();
  /// Stops it wherever it is; false: it has ended, or does not stop within the time (uninterruptible sleep). A system
  /// call that it waits in goes on afterwards as if nothing had been.
  bool stop(SteadyClock::time_point until);
  bool stop(int within_ms) { return stop(SteadyClock::now() + std::chrono::milliseconds(within_ms)); }
  /// Lets it go on to its next system call's begin or end. None: that took longer, or the thread ended; it runs then.
  /// Signals pass.
  std::optional<AtSystemCall> to_system_call(int within_ms);

  // These while it is stopped.
  std::optional<user_regs_struct> registers() const;
  bool set_registers(const user_regs_struct& registers) const;
  /// Its own mask, not the one of a system call that waits with another (sigsuspend, ppoll).
  std::optional<std::uint64_t> signal_mask() const;
  /// Blocks all signals: one that comes before it goes on, or is about to be delivered, waits. With a system call that
  /// waits with another mask the kernel forgets what was the mask before.
  bool block_signals() const;
  /// Inside a restartable sequence, which the kernel would begin anew if the thread stood elsewhere.
  bool in_restartable_sequence(std::uint64_t ip, const class ForeignMemory& memory) const;

 private:
  bool wait(int& status, SteadyClock::time_point until);
  void hide_interruption() const;
  const HeldProcess* process_;
  pid_t thread_;
  bool attached_ = false;
  bool stopped_ = false;
  bool interrupted_ = false;  ///< it will stop
  int signal_ = 0;            ///< to be delivered when it goes on
};

}  // namespace karst::collect
