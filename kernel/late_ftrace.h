// SPDX-License-Identifier: MIT
// ftrace that joins a program that runs already.
//
// To make an instance and to remove it takes the kernel a tenth of a second, most of it spent waiting for all CPUs
// (RCU). Neither a program nor its user is to wait for that. So perf events record a program from its first instruction
// on. A thread of ours makes the instance meanwhile, but only for a program that lives for kFtraceAfterMs: a shorter
// one would be over before. From when on ftrace tells, the records say (format::kStateWakesBegin).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "format/trace.h"
#include "kernel/ftrace.h"

namespace karst::kernel {

inline constexpr int kFtraceAfterMs = 50;

/// An instance that is made in a thread, which takes no signals. It also removes what killed runs have left.
class LateFtrace {
 public:
  explicit LateFtrace(const FtraceOptions& options);
  /// Waits for the thread; what it has made is removed unless it was taken.
  ~LateFtrace();
  LateFtrace(const LateFtrace&) = delete;
  LateFtrace& operator=(const LateFtrace&) = delete;

  /// False: there is neither a thread for it nor a descriptor, and never will be an answer.
  bool works() const { return there_ && cancelled_ && thread_.joinable(); }
  /// Readable once take() has an answer.
  int descriptor() const { return there_.get(); }
  /// Once. Error: it cannot be had.
  Result<std::unique_ptr<Ftrace>> take();
  /// It is not wanted any more. Does not wait.
  void cancel();

 private:
  void work(FtraceOptions options);

  std::binary_semaphore begun_{0};  // what a thread does to begin with is not to be forked into
  Descriptor there_;
  Descriptor cancelled_;
  std::optional<Result<std::unique_ptr<Ftrace>>> made_;
  std::thread thread_;
};

/// Which threads of a program that runs ftrace has to be told of. Who is made by one that it follows, it follows by
/// itself.
class Followed {
 public:
  explicit Followed(pid_t program) : program_(program) {}

  /// Those that ftrace does not follow yet, of `made` (kStateNewThread, since the last call) and the program itself. To
  /// be called until there are none. What a call gives is followed when the next one comes, at `now` (ticks); `made` is
  /// looked for behind that.
  std::vector<pid_t> further(std::uint64_t now, std::vector<format::StateRecord> made);

 private:
  pid_t program_;
  int round_ = 0;
  std::vector<pid_t> named_;                        // by the last call
  std::unordered_map<pid_t, std::uint64_t> since_;  // followed, from when on (ticks)
};

}  // namespace karst::kernel
