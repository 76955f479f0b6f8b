// SPDX-License-Identifier: MIT
// A thread that has the stacks of samples read, batch after batch, and puts them into a log.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernel/unwind.h"
#include "reader/samples.h"
#include "sandbox/credentials.h"

namespace karst::kernel {

/// Use from one thread.
class StackReader {
 public:
  struct Batch {
    std::vector<RawSample> samples;
    std::vector<CodeFile> files;               ///< those of the batch before it come first
    std::optional<sandbox::Credentials> as{};  ///< whose rights the reading of files has; none: ours
  };

  /// Between start() and stop() the log is its own.
  explicit StackReader(reader::SampleLog& log) : log_(log) {}

  /// False: no thread can be had.
  bool start();
  /// False: too many batches wait, and this one is lost.
  bool hand_over(Batch batch);
  /// Reads what is left, ends the thread, and lists the functions in the log.
  void stop();

 private:
  void run();
  void add(const Batch& batch);
  std::uint32_t stack_of(const Unwound& unwound, const Unwound::Stack& stack);

  reader::SampleLog& log_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  bool ended_ = false;

  // Of the thread, and of stop() when it has ended.
  std::vector<CodeFile> files_;
  std::map<UnwoundFunction, std::uint32_t> functions_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> stacks_;  // caller, function: 1 + place
  std::string unread_;                                                       // why

  std::binary_semaphore begun_{0};
  std::thread thread_;
};

}  // namespace karst::kernel
