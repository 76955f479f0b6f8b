// SPDX-License-Identifier: MIT
// What the threads of a process are doing now, as the kernel tells in /proc/PID/task. Stops nothing.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/held_process.h"

namespace karst::collect {

struct LiveThread {
  pid_t tid = 0;
  std::string name;
  char state = '?';              ///< as in /proc/PID/stat: R, S, D, T, t, Z
  std::int64_t syscall = -1;     ///< the number of the one that it waits in; -1: none, or not known
  std::uint64_t arguments[6]{};  ///< of it
  /// It waits for a futex whose memory looks like a mutex of glibc's that this thread holds; 0: it does not. A likely
  /// answer, not a certain one: other locks may look alike.
  pid_t holder = 0;
};

/// All threads that can be seen, in order of tid. Empty: the process is gone.
std::vector<LiveThread> live_threads(const HeldProcess& process);

}  // namespace karst::collect
