// SPDX-License-Identifier: MIT
// Thread states of one run: chooses the best way that works, records in a thread of its own, and gives the log.
//
// ftrace knows who woke whom and which other processes took the CPU, perf events need no privileges
// (kernel/ftrace.h, kernel/perf_events.h). Nothing here fails: what cannot be had is missing from the log, whose source
// says why and what would be needed.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "reader/states.h"

namespace karst::kernel {

/// kAuto: the best, but no program waits for ftrace (kernel/late_ftrace.h).
enum class Wanted : std::uint8_t { kAuto, kPerf, kFtrace, kOff };

struct StateOptions {
  Wanted wanted = Wanted::kAuto;
  bool syscalls = false;  ///< record system calls (ftrace alone can)
  bool cpus = false;      ///< record all that ran on the CPUs, also of others (ftrace alone can)
  std::size_t memory =
      std::size_t{64} << 20;  ///< bytes of records that are kept; a quarter more for the kernel's rings
};

inline constexpr std::size_t kLeastStateMemory = std::size_t{1} << 20;

/// Use from one thread.
class StateRecorder {
 public:
  explicit StateRecorder(const StateOptions& options);
  /// Waits until nothing of it is left in the kernel.
  ~StateRecorder();
  StateRecorder(const StateRecorder&) = delete;
  StateRecorder& operator=(const StateRecorder&) = delete;

  /// Begins. `program` is a child that waits to be let on to exec. Makes a thread, which takes no signals.
  void start(pid_t program);
  /// Begins with a process that runs, with the threads that it has and those that they make. What a thread does is not
  /// known until it is next seen to get or leave a CPU. Page faults are not counted.
  void attach(pid_t process);
  /// What was recorded up to now, drained from the kernel first. Recording goes on. Takes some milliseconds, and as
  /// much memory again as the records have.
  reader::StateLog look();
  /// Ends, and gives what was recorded. What the kernel has to remove, for which it may take a tenth of a second, goes
  /// on in a thread that takes no signals.
  reader::StateLog stop();

 private:
  void begin(pid_t program, bool running);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::kernel
