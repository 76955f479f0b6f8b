// SPDX-License-Identifier: MIT
// What a run's processes, their threads, the program's cgroup and the machine use, read again and again in a thread of
// karst's own from /proc and /sys. Nothing is done in the traced processes, and no privilege is needed.
//
// Pace: processes every 10 ms, the machine every 100 ms, as long as the thread stays within its budget, 0.07% of a CPU;
// else as often as that allows. So the cost does not grow with the number of processes and threads, but the time
// between two readings does. The first reading, which opens files, and 2 ms of CPU time behind it are free, so
// that also a short run has a picture.
//
// Processes are held (base/held_process.h): a number that gets another process's is never read.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "base/held_process.h"
#include "reader/usage.h"

namespace karst::kernel {

/// Of the time since the begin.
inline constexpr double kUsageBudget = 0.0007;

/// Use from one thread.
class UsageRecorder {
 public:
  UsageRecorder();
  /// Ends the thread.
  ~UsageRecorder();
  UsageRecorder(const UsageRecorder&) = delete;
  UsageRecorder& operator=(const UsageRecorder&) = delete;

  /// Begins with this process, whose cgroup is read, too. Makes a thread, which takes no signals; where none can be had
  /// nothing is recorded.
  void start(const HeldProcess& first);
  void start(pid_t child);  ///< that the caller has not waited for, so that its number is its own
  /// Another process of the run; does nothing before start(), and for one that is known.
  void add(pid_t process);
  /// What was read up to now. Reading goes on. Waits for the reading that is under way, some milliseconds at most.
  reader::UsageLog look();
  /// Reads once more, and ends. Empty where start() was not called.
  reader::UsageLog stop();
  /// After stop(): CPU time that the thread took, ns.
  std::uint64_t cost_ns() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::kernel
