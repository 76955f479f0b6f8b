// SPDX-License-Identifier: MIT
// What the events of a trace add up to, and which of them could not be used.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "reader/trace.h"

namespace karst::answers {

/// What the events of a thread add up to.
struct ThreadCounts {
  std::uint64_t calls = 0;
  std::uint64_t open_calls = 0;
  std::uint64_t elsewhere = 0;  ///< pieces of calls that are counted already, here or in the parent
  std::uint64_t events = 0;
  std::uint64_t span_ns = 0;
  std::uint64_t short_calls = 0;  ///< left out
};

struct TraceCounts {
  /// Of what a trace has without its events: all numbers of calls are 0.
  static TraceCounts without_events(const reader::Trace& trace);

  std::vector<std::vector<ThreadCounts>> threads;  ///< by process and thread
  std::uint64_t calls = 0;
  std::uint64_t open_calls = 0;
  std::uint64_t unwound_calls = 0;
  std::uint64_t jumped_calls = 0;
  std::uint64_t tail_calls = 0;
  std::uint64_t left_calls = 0;  ///< of these: what they called is not in their times
  std::uint64_t cut_calls = 0;
  std::uint64_t notes = 0;
  std::uint64_t overwritten = 0;
  std::uint64_t lost = 0;
  std::uint64_t span_ns = 0;
  std::vector<reader::Problem> problems;  ///< those of the file, then what the events showed
};

/// Counts what a trace has, for whoever goes through its threads for other reasons, too.
class TraceCounter {
 public:
  /// `trace` outlives it.
  explicit TraceCounter(const reader::Trace& trace);
  ~TraceCounter();
  TraceCounter(TraceCounter&&) = delete;

  /// All calls that a thread recorded. Nothing happens if they were added before.
  void add(const reader::Thread& thread, const reader::Calls& calls);
  /// Goes through the threads that were not added. `done` counts their events, as of count_trace(). Call once.
  TraceCounts take(std::atomic<std::uint64_t>* done = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Goes through all events. `done` counts them, for whoever shows progress; may be null.
TraceCounts count_trace(const reader::Trace& trace, std::atomic<std::uint64_t>* done = nullptr);

}  // namespace karst::answers
