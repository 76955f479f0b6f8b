// SPDX-License-Identifier: MIT
// What a program's threads do at moments of their CPU time, with their stacks, by perf events (cpu-clock).
//
// Every thread of the program, and of what descends from it, is interrupted by the kernel each time that it has used a
// period of CPU time, and, where the kernel lets us see it, as it leaves a CPU, with which a wait begins. These fill
// rings that are emptied some times a second, so that there are not many more of them than of the others. The kernel
// copies its registers and the top of its stack into rings of ours; nothing of it is in the traced program. Stacks are
// read of files in a sandbox (kernel/unwind.h). Times are CLOCK_MONOTONIC_RAW, which stop() turns into ticks.
//
// A process that runs gets an event for each thread and CPU; threads that are made later inherit their maker's. A
// thread that was made meanwhile may have both: of its samples one event's are taken.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/held_process.h"
#include "base/result.h"
#include "reader/samples.h"
#include "sandbox/credentials.h"

namespace karst::kernel {

struct SampleOptions {
  std::uint32_t per_second = 0;              ///< of a thread's CPU time, and of its waits; 0: nothing is sampled
  bool waits = false;                        ///< as threads leave their CPUs, too, where the kernel allows it
  std::optional<sandbox::Credentials> as{};  ///< whose rights the reading of files has; none: ours
};
inline constexpr std::uint32_t kMostPerSecond = 10'000;

/// Use from one thread.
class Sampler {
 public:
  explicit Sampler(const SampleOptions& options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Begins. `program` is a child that waits to be let on to exec. Makes threads, which take no signals. Error: why the
  /// kernel refuses it; nothing is sampled then, and the log's note says the same.
  Status start(pid_t program);
  /// The same with a process that runs: the threads that it has, and those that they make.
  Status attach(const HeldProcess& process);
  Status attach(pid_t child);  ///< that the caller has not waited for, so that its number is its own
  bool works() const;
  /// Ends, and gives what was sampled; functions have no names yet (symbols/sampled_names.h).
  reader::SampleLog stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::kernel
