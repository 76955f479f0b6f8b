// SPDX-License-Identifier: MIT
// What the kernel says of a process or a thread in /proc/PID/stat: the one reader of that file for tools.
//
// The file is "PID (NAME) STATE NUMBER ...". A process chooses its name, which may hold parentheses, blanks and
// numbers; what stands behind the last parenthesis is the kernel's alone.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace karst {

/// As it was when it was read.
class ProcessStat {
 public:
  /// Fields, numbered from 1 on as in proc(5).
  enum Field : std::uint8_t {
    kMinorFaults = 10,
    kMajorFaults = 12,
    kUserTicks = 14,
    kSystemTicks = 15,
    kThreads = 20,
    kStartTicks = 22,
    kResidentPages = 24,
    kExitStatus = 52,
  };

  /// Of a file like /proc/PID/stat. Empty: it cannot be read, or the process has ended.
  static ProcessStat read(const std::string& file);
  static ProcessStat of(std::int64_t pid) { return read("/proc/" + std::to_string(pid) + "/stat"); }
  explicit ProcessStat(const std::string& text);

  bool empty() const { return rest_.empty(); }
  /// R, S, D, T, t, Z, X and more; '?': it cannot be read.
  char state() const { return rest_.empty() ? '?' : rest_.front(); }
  /// Whether it has ended, reaped or not.
  bool is_gone() const { return empty() || state() == 'Z' || state() == 'X'; }
  std::optional<std::uint64_t> number(Field field) const;

 private:
  std::string rest_;  // from the state on
};

}  // namespace karst
