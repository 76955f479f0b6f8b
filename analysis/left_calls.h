// SPDX-License-Identifier: MIT
// Calls that were left by a tail call into code that is not traced, and may have lasted long in it.
//
// Most tail calls last until their callee returns (docs/limits/may-recording.md, "Tail calls"). Where that could not be
// arranged the call's time ends at the jump, and only a bound of the rest is known: its thread's next event
// (columns/left.h). Such a bound is no duration, so these calls are no outliers (analysis/outliers.h), but they are
// told beside them.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/outliers.h"
#include "analysis/selection.h"
#include "columns/columns.h"
#include "columns/scope.h"
#include "reader/column.h"
#include "reader/trace.h"

namespace karst::analysis {

/// A function of one process with such calls.
struct LeftFunction {
  /// Its call of the longest time behind the jump: `call.duration` has both, and `call.end` is the bound. excess() is
  /// by how much the time behind the jump is beyond the usual.
  Outlier longest;
  std::uint64_t usual_behind = 0;  ///< ticks: the median of the times behind the jump; 0: fewer than ten calls
  std::uint64_t calls = 0;         ///< that were left
};

/// Finds them in one pass over all threads, in any order. `functions` must outlive it. Memory: 8 bytes a
/// call that was left. Use from one thread.
class LeftCallFinder {
 public:
  /// Only calls of `functions` when it is not null, and those that may have lasted into `range`.
  explicit LeftCallFinder(const FunctionSet* functions, const columns::TickRange& range = {})
      : functions_(functions), range_(range) {}

  void add(const reader::Thread& thread, const columns::CallColumns& calls);
  /// The `most` functions of greatest excess, of which one call may have lasted at least three times as long behind the
  /// jump as usual, and `least` ticks more. Of fewer than ten calls nothing is usual. Call once.
  std::vector<LeftFunction> take(std::uint64_t least, std::size_t most);

 private:
  struct Sums {
    Outlier longest;
    std::uint64_t longest_behind = 0;
    reader::Column<std::uint64_t> behind;
  };
  const FunctionSet* functions_;
  columns::TickRange range_;
  std::unordered_map<std::uint64_t, Sums> of_;  // by process and id
};

inline constexpr std::size_t kMostLeftFunctions = 3;  ///< that are told beside slow calls

/// What is worth being told beside `groups`, in ticks, of a trace or a part that is `length` long. Bounds include what
/// callers did next, so short ones say nothing.
std::uint64_t least_left_excess(const std::vector<OutlierGroup>& groups, std::uint64_t length);

}  // namespace karst::analysis
