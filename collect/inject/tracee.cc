// SPDX-License-Identifier: MIT
#include "collect/inject/tracee.h"

#include <linux/ptrace.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "collect/inject/memory.h"

namespace karst::collect {
namespace {

// glibc's declarations and the kernel's do not go together; these are the kernel's.
long request(int what, pid_t thread, std::uint64_t address, std::uint64_t data) {
  return syscall(SYS_ptrace, what, thread, address, data);
}
long request(int what, pid_t thread, std::uint64_t address, const void* data) {
  return syscall(SYS_ptrace, what, thread, address, data);
}

/// System calls that end with EINTR when their thread is stopped, though no signal came (signal(7)), and have done
/// nothing then.
bool ends_when_stopped(std::uint64_t number) {
  constexpr std::array<std::uint64_t, 19> kSuch = {
      SYS_epoll_wait,      SYS_epoll_pwait,  SYS_epoll_pwait2,  SYS_semop,    SYS_semtimedop, SYS_read,     SYS_readv,
      SYS_rt_sigtimedwait, SYS_io_getevents, SYS_io_pgetevents, SYS_recvfrom, SYS_recvmsg,    SYS_recvmmsg, SYS_accept,
      SYS_accept4,         SYS_write,        SYS_writev,        SYS_sendto,   SYS_sendmsg};
  return std::find(kSuch.begin(), kSuch.end(), number) != kSuch.end();
}

}  // namespace

Tracee::Tracee(const HeldProcess& process, pid_t thread) : process_(&process), thread_(thread) {
  if (request(PTRACE_SEIZE, thread, 0, std::uint64_t{PTRACE_O_TRACESYSGOOD}) != 0) return;
  attached_ = process.has_thread(thread);
  if (!attached_) errno = ESRCH;
}

Tracee::Tracee(Tracee&& other) noexcept
    : process_(other.process_),
      thread_(other.thread_),
      attached_(std::exchange(other.attached_, false)),
      stopped_(other.stopped_),
      interrupted_(other.interrupted_),
      signal_(other.signal_) {}

void Tracee::let_go() {
  const int before = errno;
  constexpr int kLooks = 100;
  constexpr int kLooksEveryMs = 10;
  for (int look = 0; attached_ && !stopped_ && interrupted_ && look < kLooks; ++look)
    if (!stop(kLooksEveryMs) && attached_ && process_->state(thread_) == 'D') break;
  if (attached_ && stopped_) request(PTRACE_DETACH, thread_, 0, static_cast<std::uint64_t>(signal_));
  attached_ = stopped_ = false;
  errno = before;
}

bool Tracee::wait(int& status, SteadyClock::time_point until) {
  for (;;) {
    const pid_t got = waitpid(thread_, &status, __WALL | WNOHANG);
    if (got == thread_) {
      stopped_ = WIFSTOPPED(status);
      if (!stopped_) attached_ = false;  // it has ended
      return stopped_;
    }
    if (got < 0 && errno != EINTR) {
      attached_ = false;
      return false;
    }
    if (SteadyClock::now() > until) return false;
    usleep(50);
  }
}

void Tracee::interrupt() {
  if (!stopped_ && !interrupted_) interrupted_ = request(PTRACE_INTERRUPT, thread_, 0, std::uint64_t{0}) == 0;
}

bool Tracee::stop(SteadyClock::time_point until) {
  if (stopped_) return true;
  interrupt();
  if (!interrupted_) return false;
  int status = 0;
  if (!wait(status, until)) return false;
  interrupted_ = false;
  // A signal that was about to be delivered stops it first.
  signal_ = status >> 16 == 0 && (WSTOPSIG(status) & 0x80) == 0 ? WSTOPSIG(status) : 0;
  if (status >> 16 != 0) hide_interruption();
  return true;
}

void Tracee::hide_interruption() const {
  auto now = registers();
  if (!now || static_cast<std::int64_t>(now->orig_rax) < 0 || static_cast<std::int64_t>(now->rax) != -EINTR ||
      !ends_when_stopped(now->orig_rax))
    return;
  now->rax = static_cast<std::uint64_t>(kRestartNoHand);
  set_registers(*now);
}

std::optional<AtSystemCall> Tracee::to_system_call(int within_ms) {
  const auto until = SteadyClock::now() + std::chrono::milliseconds(within_ms);
  for (;;) {
    if (stopped_) {
      if (request(PTRACE_SYSCALL, thread_, 0, static_cast<std::uint64_t>(signal_)) != 0) return std::nullopt;
      stopped_ = false;
      signal_ = 0;
    }
    int status = 0;
    if (!wait(status, until)) return std::nullopt;
    if (status >> 16 != 0) continue;  // an event: a group's stop
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      signal_ = WSTOPSIG(status);
      continue;
    }
    ptrace_syscall_info info{};
    if (request(PTRACE_GET_SYSCALL_INFO, thread_, sizeof info, &info) <= 0) return std::nullopt;
    AtSystemCall at;
    at.begins = info.op == PTRACE_SYSCALL_INFO_ENTRY;
    if (at.begins) {
      at.number = info.entry.nr;
      for (int i = 0; i < 6; ++i) at.arguments[i] = info.entry.args[i];
    }
    return at;
  }
}

std::optional<user_regs_struct> Tracee::registers() const {
  user_regs_struct registers{};
  iovec place{&registers, sizeof registers};
  if (request(PTRACE_GETREGSET, thread_, 1 /* NT_PRSTATUS */, &place) != 0 || place.iov_len != sizeof registers)
    return std::nullopt;
  return registers;
}

bool Tracee::set_registers(const user_regs_struct& registers) const {
  iovec place{const_cast<user_regs_struct*>(&registers), sizeof registers};
  return request(PTRACE_SETREGSET, thread_, 1, &place) == 0;
}

std::optional<std::uint64_t> Tracee::signal_mask() const {
  std::uint64_t mask = 0;
  if (request(PTRACE_GETSIGMASK, thread_, sizeof mask, &mask) != 0) return std::nullopt;
  return mask;
}

bool Tracee::block_signals() const {
  const std::uint64_t all = ~std::uint64_t{0};
  return request(PTRACE_SETSIGMASK, thread_, sizeof all, &all) == 0;
}

bool Tracee::in_restartable_sequence(std::uint64_t ip, const ForeignMemory& memory) const {
  ptrace_rseq_configuration configuration{};
  if (request(PTRACE_GET_RSEQ_CONFIGURATION, thread_, sizeof configuration, &configuration) <= 0 ||
      configuration.rseq_abi_pointer == 0)
    return false;
  const auto section = memory.get<std::uint64_t>(configuration.rseq_abi_pointer + 8);
  if (!section || *section == 0) return false;
  struct Section {
    std::uint32_t version, flags;
    std::uint64_t start, size, abort;
  };
  const auto now = memory.get<Section>(*section);
  return !now || ip - now->start < now->size;
}

}  // namespace karst::collect
