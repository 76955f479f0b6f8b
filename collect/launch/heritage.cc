// SPDX-License-Identifier: MIT
#include "collect/launch/heritage.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/process_stat.h"

namespace karst::collect {

Heritage::Heritage() : karst_(getpid()) { prctl(PR_GET_PDEATHSIG, &death_signal_); }

void Heritage::pass_on() const {
  if (getpid() == karst_) return;
  bool listens = false;
  for (const char* name : {"LISTEN_PID", "WATCHDOG_PID"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || value != std::to_string(karst_)) continue;
    setenv(name, std::to_string(getpid()).c_str(), 1);
    listens = listens || name[0] == 'L';
  }
  if (listens) unsetenv("LISTEN_PIDFDID");  // another name of karst's process; who finds none goes by the number
  if (death_signal_ == 0) return;
  prctl(PR_SET_PDEATHSIG, death_signal_);
  if (getppid() != karst_) raise(death_signal_);  // it has died meanwhile
}

// The process in between ends at once, so that the recorder is nobody's child here: a program that waits for any child
// must not meet one that it did not make.
std::optional<Role> part_ways() {
  // Who is to get all orphans would get this one, too.
  int takes_orphans = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &takes_orphans);
  if (takes_orphans != 0) prctl(PR_SET_CHILD_SUBREAPER, 0);
  const pid_t between = fork();
  if (between == 0) {
    const pid_t recorder = fork();
    if (recorder != 0) _exit(recorder < 0 ? 1 : 0);
    // The terminal's signals are for the program; what reads its output sees it end with the program.
    setsid();
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0) {
      dup2(nothing, STDIN_FILENO);
      dup2(nothing, STDOUT_FILENO);
      if (nothing > STDERR_FILENO) close(nothing);
    }
    return Role::kRecorder;
  }
  int status = 1;
  while (between > 0 && waitpid(between, &status, 0) < 0 && errno == EINTR) {
  }
  if (takes_orphans != 0) prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (between < 0 || status != 0) return std::nullopt;
  return Role::kProgram;
}

OtherProcess::OtherProcess(pid_t pid) : pid_(pid), end_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

OtherProcess::End OtherProcess::how_it_ended() const {
  const auto stat = ProcessStat::of(pid_);
  // Its number may be another process's by now; that one would not be dead, too.
  const auto status = stat.number(ProcessStat::kExitStatus);
  if (stat.state() != 'Z' || !status) return {};
  End end;
  end.wait_status = static_cast<std::int32_t>(*status);
  const std::uint64_t ticks =
      stat.number(ProcessStat::kUserTicks).value_or(0) + stat.number(ProcessStat::kSystemTicks).value_or(0);
  end.cpu_ns = static_cast<double>(ticks) * 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
  return end;
}

}  // namespace karst::collect
