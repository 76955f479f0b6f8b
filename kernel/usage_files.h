// SPDX-License-Identifier: MIT
// What /proc and /sys say of the machine, a cgroup and a process, as values of format/usage_kinds.h. What cannot be
// read is left out: the kernel does not have it, or does not show it to us.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/held_process.h"
#include "format/usage_kinds.h"

namespace karst::kernel {

/// A file of the kernel's that is read again and again; or none.
class SystemFile {
 public:
  SystemFile() = default;
  explicit SystemFile(const std::string& path);
  explicit SystemFile(Descriptor file);
  explicit operator bool() const { return static_cast<bool>(file_); }
  /// What it says now, its first 64 KiB. Empty: it cannot be read, or what it is about has ended. Valid until the
  /// thread reads the next one.
  std::string_view read() const;

 private:
  Descriptor file_;
};

using SayUsage = std::function<void(format::UsageKind kind, std::int64_t value)>;

/// The whole machine. `root`: what stands before /proc and /sys, for tests.
class MachineUsage {
 public:
  explicit MachineUsage(const std::string& root = "");
  void read(const SayUsage& say) const;

 private:
  static constexpr std::size_t kMostFrequencies = 16;
  void find_temperatures(const std::string& sys);

  SystemFile stat_;
  SystemFile memory_;
  std::array<SystemFile, 3> pressure_;
  std::vector<SystemFile> frequencies_;   ///< of the first kMostFrequencies groups of CPUs
  std::vector<SystemFile> temperatures_;  ///< the processor's own
};

/// The cgroup of a process, of version 1, 2 or both. `memberships`: /proc/PID/cgroup.
class GroupUsage {
 public:
  explicit GroupUsage(std::string_view memberships, const std::string& root = "");
  void read(const SayUsage& say) const;

 private:
  void find_second(const std::string& mount, const std::string& path);
  void find_memory(const std::string& directory);
  void find_cpu(const std::string& directory);

  SystemFile cpu_;       ///< cpu.stat
  SystemFile cpu_used_;  ///< version 1
  SystemFile memory_;
  std::vector<SystemFile> limits_;  ///< its own, and those of the groups that it is in
  SystemFile memory_stat_;          ///< version 1: has the limit
  std::array<SystemFile, 3> pressure_;
};

/// What a thread's schedstat says.
struct ThreadTimes {
  std::int64_t cpu = 0;   ///< ns
  std::int64_t wait = 0;  ///< ns that it could have run, and did not
  std::int64_t switches = 0;
};
std::optional<ThreadTimes> thread_times(std::string_view schedstat);

/// One process, without its threads.
class ProcessUsage {
 public:
  explicit ProcessUsage(const HeldProcess& process);
  /// False: it has ended, and will say nothing any more.
  bool read(const SayUsage& say);
  /// As it was when it was read.
  std::uint64_t threads() const { return threads_; }

 private:
  SystemFile stat_;
  SystemFile io_;
  std::optional<clockid_t> clock_;
  std::uint64_t threads_ = 0;
};

}  // namespace karst::kernel
