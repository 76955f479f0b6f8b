// SPDX-License-Identifier: MIT
// What rows of lists are made of. A gatherer adds up calls, thread by thread; a table names the one that its rows come
// from, and several tables may have the same. However many gather at once, each thread's calls are rebuilt once.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "sql/scan.h"

namespace karst::sql {

/// Adds up what some tables need. Of one thread at a time.
class Gatherer {
 public:
  virtual ~Gatherer() = default;
  /// Whether it needs calls at all; if not, finish() alone is called.
  virtual bool is_of_calls() const { return true; }
  /// All calls that a thread recorded, with what tracing took. Threads come in the source's order.
  virtual void recorded(const reader::Thread& /*thread*/, const reader::Calls& /*calls*/) {}
  /// Those that are asked about, after recorded(). Who keeps them shares them.
  virtual void chosen(const reader::Thread& /*thread*/, const std::shared_ptr<const reader::Calls>& /*calls*/) {}
  /// After the last thread, once.
  virtual void finish() {}
};

/// Lets threads through by their numbers, from 0 on.
class Turnstile {
 public:
  /// Runs `act` when all before `at` have run, or does nothing where `at` has had its turn. What `act` throws goes on,
  /// and those behind it come nevertheless.
  template <typename Act>
  void pass(std::size_t at, Act act) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ >= at; });
    if (next_ != at) return;
    const Passed passed{*this};
    act();
  }
  std::size_t next() {
    const std::scoped_lock lock(mutex_);
    return next_;
  }

 private:
  struct Passed {
    Turnstile& of;
    ~Passed() {
      ++of.next_;
      of.changed_.notify_all();
    }
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
};

/// What was gathered of a source. From several threads at once.
class Gathered {
 public:
  /// `source` outlives it.
  explicit Gathered(const Source& source) : source_(source) {}
  Gathered(Gathered&&) = delete;

  const Source& source() const { return source_; }
  /// Has all that these tables need gathered by the way, from threads that somebody asks calls_of(). Call it before.
  void by_the_way(std::span<const Table> tables);
  /// Calls of a thread that are asked about; `at`: its place in the source.
  std::shared_ptr<const reader::Calls> calls_of(std::size_t at);
  /// The rows of a table that is a list. Goes through those threads that it has not seen.
  std::unique_ptr<List> list(const Table& table);

 private:
  using Gatherers = std::map<MakeGatherer, std::shared_ptr<Gatherer>>;

  void end_by_the_way();
  std::shared_ptr<const Gatherer> gathered(MakeGatherer make);
  void walk(Gatherer& gatherer) const;

  const Source& source_;
  std::mutex mutex_;
  Gatherers done_;
  Gatherers going_;  // of by_the_way(), until all threads have been seen
  Turnstile recorded_, chosen_;
};

}  // namespace karst::sql
