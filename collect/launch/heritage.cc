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
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

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
  constexpr std::size_t kState = 0;  // fields of /proc/PID/stat, behind the name
  constexpr std::size_t kUserTime = 11;
  constexpr std::size_t kSystemTime = 12;
  constexpr std::size_t kStatus = 49;
  std::ifstream in("/proc/" + std::to_string(pid_) + "/stat");
  std::stringstream text;
  text << in.rdbuf();
  const std::string all = text.str();
  const auto name_end = all.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(all.substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  // Its number may be another process's by now; that one would not be dead, too.
  if (fields.size() <= kStatus || fields[kState] != "Z") return {};
  End end;
  end.wait_status = static_cast<std::int32_t>(std::strtol(fields[kStatus].c_str(), nullptr, 10));
  const double ticks =
      std::strtod(fields[kUserTime].c_str(), nullptr) + std::strtod(fields[kSystemTime].c_str(), nullptr);
  end.cpu_ns = ticks * 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
  return end;
}

}  // namespace karst::collect
