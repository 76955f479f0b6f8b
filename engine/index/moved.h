// SPDX-License-Identifier: MIT
// What the numbers of one index are in a later one of the same file, which has grown meanwhile. Threads are known by
// their process and when they joined it, calls by their thread, their begin and their function.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/index/index.h"

namespace karst::engine {

/// Compares two indexes of one file, or of two files under one name. Both must outlive it.
class Moved {
 public:
  Moved(const TraceIndex& before, const TraceIndex& now);

  /// Whether every thread and function has the number that it had.
  bool same_threads() const { return same_threads_; }
  /// The same, and of every call, too.
  bool same_calls() const { return same_calls_; }
  /// Whether the two have no thread in common: the file is another one.
  bool is_other() const { return is_other_; }
  /// How much later times are counted from now, ns: those of `before` become less by it.
  double shift_ns() const;

  /// The number of a thread of `before` now; nothing: there is no such thread any more.
  std::optional<std::uint32_t> thread(std::uint32_t number) const;
  /// The row of a call of `before` now; nothing: it is not there.
  std::optional<std::uint32_t> row(std::uint32_t thread, std::uint32_t row) const;

 private:
  bool same_row(const ThreadIndex& before, const ThreadIndex& now, std::size_t row) const;

  const TraceIndex& before_;
  const TraceIndex& now_;
  std::vector<std::int64_t> threads_;  // by number before; -1: none
  bool same_threads_ = true;
  bool same_calls_ = true;
  bool is_other_ = true;
};

}  // namespace karst::engine
