// SPDX-License-Identifier: MIT
// Which calls of a thread a question is about: those in a range of time, or what happened within one call.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "columns/columns.h"
#include "columns/work.h"

namespace karst::columns {

/// A half-open range of absolute ticks.
struct TickRange {
  std::uint64_t begin = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
  /// Part of [from, to) that lies in the range.
  std::uint64_t clip(std::uint64_t from, std::uint64_t to) const {
    if (from < begin) from = begin;
    if (to > end) to = end;
    return to > from ? to - from : 0;
  }
};

/// The rows of one thread that a question is about. `outer` are the calls that were running when the range began,
/// outermost first; [first, last) those that begin in it. Rows of `outer` that end with the range's begin are there as
/// parents alone: counts() is false for them.
struct RowRange {
  std::vector<std::uint32_t> outer;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  TickRange range;
  Work* work = nullptr;  ///< who looks on; each_row() tells it and ends early when told to

  bool empty() const { return outer.empty() && first == last; }
  bool has(std::uint32_t row) const {
    return row >= first ? row < last : std::binary_search(outer.begin(), outer.end(), row);
  }
  bool counts(const CallColumns& calls, std::uint32_t row) const {
    return row >= first || calls.end(row) > range.begin;
  }
};

/// Of all calls that overlap `range`.
RowRange rows_in(const CallColumns& calls, TickRange range);
/// The innermost call that is open at `ticks`, or reader::kNoParent.
std::uint32_t innermost_at(const CallColumns& calls, std::uint64_t ticks);
/// Of one call and all within it.
RowRange rows_of_call(const CallColumns& calls, std::uint32_t row);
/// One past the last row of the calls within `row`.
std::uint32_t subtree_end(const CallColumns& calls, std::uint32_t row);

/// A call that a switch of stacks interrupted has several rows, and counts once; one that a forked child inherited is
/// its parent's. As analysis/report.h counts.
inline bool is_counted(std::uint8_t marks) { return (marks & (reader::kCallResumed | reader::kCallInherited)) == 0; }
/// Both ends are known, so that its duration counts.
inline bool is_complete(std::uint8_t marks) { return !reader::call_is_open(marks) && is_counted(marks); }

/// Calls `use(row)` for every row of the range, parents first; not for all of them once the work is stopped.
template <typename Use>
void each_row(const RowRange& rows, Use&& use) {
  if (is_stopped(rows.work)) return;
  for (const std::uint32_t row : rows.outer) use(row);
  for (std::uint32_t row = rows.first; row < rows.last;) {
    const std::uint32_t stop = rows.last - row > kWorkStep ? row + kWorkStep : rows.last;
    const std::uint32_t count = stop - row;
    for (; row < stop; ++row) use(row);
    if (!go_on(rows.work, count)) return;
  }
}

}  // namespace karst::columns
