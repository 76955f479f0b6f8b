// SPDX-License-Identifier: MIT
// CPU times of the program, as the maintenance process sees them. That is no thread of the program's, so the kernel's
// clocks of threads are closed to it: /proc says how long a thread has run. Of a thread that runs, this is as of the
// kernel's last tick (1 to 10 ms ago) or of when it began to run, if that was later.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// How far behind such a time can be, ns.
inline constexpr std::uint64_t kLatestCpuTime = 12'000'000;

/// Of all threads, ns.
std::uint64_t process_cpu_time();

/// Of a thread. Used by the maintenance process alone; a new one has none of the files that the one before had open.
class ThreadCpuTime {
 public:
  /// By its kernel id, ns; 0 when it is gone, or when the system does not tell.
  std::uint64_t read(std::uint32_t tid);
  /// The thread is gone.
  void close();

 private:
  std::uint32_t tid_ = 0;
  std::uint32_t reader_ = 0;  // process that has the file open
  int file_ = -1;
};

}  // namespace karst::runtime
