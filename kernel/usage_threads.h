// SPDX-License-Identifier: MIT
// What the threads of one process use. Of a process with many threads some are read at a time, in turns: what is read
// are totals, so a thread that is read rarely is right in the long run.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "base/held_process.h"
#include "kernel/usage_files.h"
#include "kernel/usage_store.h"

namespace karst::kernel {

/// Series of one thing, made as it says something for the first time.
class UsageSpeaker {
 public:
  UsageSpeaker(format::UsageOf of, std::uint32_t pid, std::uint32_t tid) : of_(of), pid_(pid), tid_(tid) {}
  void say(UsageStore& store, std::uint64_t ticks, format::UsageKind kind, std::int64_t value);

 private:
  format::UsageOf of_;
  std::uint32_t pid_;
  std::uint32_t tid_;
  std::array<std::optional<std::size_t>, sizeof format::kUsageKinds / sizeof format::kUsageKinds[0] + 1> series_{};
};

/// One thread at a time.
class UsedThreads {
 public:
  static constexpr std::size_t kMostAtOnce = 32;  ///< are read
  static constexpr std::size_t kMostOpen = 16;    ///< files that stay open: descriptors are few
  explicit UsedThreads(const HeldProcess& process) : process_(process) {}

  /// Reads some. `count`: so many there are. Returns what all that were seen have had since they were, threads that
  /// ended included; nothing: the kernel does not tell it.
  std::optional<ThreadTimes> read(UsageStore& store, std::uint64_t ticks, std::uint64_t count);

 private:
  struct Thread {
    pid_t number;
    SystemFile file;  ///< none: it is opened each time
    UsageSpeaker own;
    std::optional<ThreadTimes> first{};  ///< counted from here on; of a thread that began later, from 0
    ThreadTimes last{};
  };
  void list();
  /// False: it has ended.
  bool read_one(Thread& thread, UsageStore& store, std::uint64_t ticks);
  void end(std::map<pid_t, Thread>::iterator thread);

  HeldProcess process_;
  std::map<pid_t, Thread> threads_;
  ThreadTimes ended_{};       ///< of threads that are not there any more
  pid_t next_ = 0;            ///< whose turn it is
  std::uint64_t listed_ = 0;  ///< threads that there were when they were listed
  std::uint32_t since_list_ = 0;
  bool is_first_list_ = true;
  bool is_known_ = false;
};

}  // namespace karst::kernel
