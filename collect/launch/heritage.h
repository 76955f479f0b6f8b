// SPDX-License-Identifier: MIT
// What a program has of who started karst: its number in variables, the signal for its parent's death, or, with
// `karst run --exec`, the very process.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/descriptor.h"

namespace karst::collect {

/// What was meant for karst's process and is the program's. Made in karst, passed on in the program's process.
class Heritage {
 public:
  Heritage();
  /// LISTEN_PID and WATCHDOG_PID name the program's process where they named karst's, and the signal that karst gets at
  /// its parent's death is the program's at karst's. After a change of user, which takes that away.
  void pass_on() const;

 private:
  pid_t karst_;
  int death_signal_ = 0;
};

enum class Role { kProgram, kRecorder };
/// Makes a second process, which is no child of this one. Returns in both. None: there can be none.
std::optional<Role> part_ways();

/// A process that is no child of ours. It has ended when end() is readable; only then ask for the rest.
class OtherProcess {
 public:
  OtherProcess() = default;
  explicit OtherProcess(pid_t pid);
  const Descriptor& end() const { return end_; }
  /// Known as long as its parent has not taken it.
  struct End {
    std::int32_t wait_status = -1;
    double cpu_ns = 0;
  };
  End how_it_ended() const;

 private:
  pid_t pid_ = -1;
  Descriptor end_;
};

}  // namespace karst::collect
