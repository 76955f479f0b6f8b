// SPDX-License-Identifier: MIT
// What can be looked at while a trace is being read: the threads that are done, and the begin of those that are so long
// that nobody should wait for all of them.
//
// It is put together as an index of its own, by copies that share the columns, so all that draws an index draws this
// one. What is there is right and stays so, row for row, with one exception that shows in it: of a thread that is read
// in part (ThreadIndex::unread_from) the last calls are open, and rows may get other numbers.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/index/index.h"

namespace karst::engine {

/// Thread-safe.
class Preview {
 public:
  struct Limits {
    std::uint64_t least_events = 20'000'000;  ///< shorter traces are read before anybody has looked
    std::uint64_t long_thread = 16'000'000;   ///< events from which on a thread is shown in parts
    std::function<void()> on_part;            ///< told whenever there is more, by the thread that made it
  };
  Preview() : Preview(Limits{}) {}
  explicit Preview(Limits limits) : limits_(std::move(limits)) {}

  // For who looks on.

  /// All that is there by now; null: nothing yet, or nothing any more.
  std::shared_ptr<const TraceIndex> refresh();
  /// What refresh() gave last.
  std::shared_ptr<const TraceIndex> latest() const;
  /// Grows whenever refresh() would have more than before.
  std::uint64_t parts() const;
  /// Numbers of threads that are to be read before others. Those that there are not are left out.
  void want(std::vector<std::uint32_t> threads);

  // For who reads.

  const Limits& limits() const { return limits_; }
  /// `listed` has its threads, and nothing in them but their states.
  void begin(const TraceIndex& listed);
  /// A thread that was read, or its begin.
  void add(std::size_t number, ThreadIndex thread);
  /// The whole is there, or never will be.
  void end();
  std::vector<std::uint32_t> wanted() const;

 private:
  void take_in(std::size_t number, const ThreadIndex& thread);

  const Limits limits_;
  mutable std::mutex mutex_;  // of what follows
  bool on_ = false;
  std::uint64_t parts_ = 0;
  std::vector<std::uint32_t> wanted_;
  std::vector<std::pair<std::size_t, ThreadIndex>> fresh_;  // not in now_ yet
  std::shared_ptr<const TraceIndex> now_;

  std::mutex refreshing_;  // of what follows; taken before mutex_
  std::unique_ptr<TraceIndex> next_;
  std::vector<std::vector<std::uint64_t>> seen_;  // by process and id, of the thread at hand: its calls and 1
};

}  // namespace karst::engine
