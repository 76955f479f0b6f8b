// One thread of another process under ptrace. It is seized: no signal is sent, and if karst dies the kernel lets it go
// on where it stands. Use from one thread; the destructor lets go.
#pragma once
#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>

namespace karst::collect {

/// In a system call that begins, or ends.
struct AtSystemCall {
  bool begins = false;
  std::uint64_t number = 0;  ///< these two if it begins
  std::uint64_t arguments[6] = {};
};

/// What the kernel has in rax for a system call that it begins anew unless a handler runs; not in any header.
inline constexpr std::int64_t kRestartNoHand = -514;
inline constexpr int kStopsWithinMs = 100;  ///< what is interrupted: a thread that runs

class Tracee {
 public:
  /// Check with `attached()`; if not, errno says why.
  explicit Tracee(pid_t thread);
  ~Tracee();
  Tracee(Tracee&& other) noexcept;
  Tracee& operator=(Tracee&&) = delete;

  bool attached() const { return attached_; }
  /// Asks it to stop, without waiting for that.
  void interrupt();
  /// Stops it wherever it is; false: it has ended, or does not stop within the time (uninterruptible sleep). A system
  /// call that it waits in goes on afterwards as if nothing had been.
  bool stop(int within_ms);
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
  bool wait(int& status, int within_ms);
  void hide_interruption() const;
  pid_t thread_;
  bool attached_ = false;
  bool stopped_ = false;
  bool interrupted_ = false;  ///< it will stop
  int signal_ = 0;            ///< to be delivered when it goes on
};

}  // namespace karst::collect
