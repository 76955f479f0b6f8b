// Which calls a question is about: some threads, a range of time, or what happened within one call.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "analysis/waits.h"
#include "view/index.h"
#include "view/work.h"

namespace karst::view {

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

/// What a question is about: parts of threads of one trace.
struct Scope {
  struct Part {
    const ThreadIndex* thread = nullptr;
    std::uint32_t number = 0;  ///< of the thread in the index
    RowRange rows;

    /// Time of a call that is this process's and in the range.
    std::uint64_t time_of(std::uint32_t row) const { return rows.range.clip(begin_of(row), thread->calls.end(row)); }
    /// The same told apart by states. The hints are as of ThreadStates::before.
    reader::StateTimes states_of(std::uint32_t row, std::size_t& begin_hint, std::size_t& end_hint) const {
      const std::uint64_t begin = std::max(begin_of(row), rows.range.begin);
      const std::uint64_t end = std::min(thread->calls.end(row), rows.range.end);
      if (end <= begin) return {};
      return analysis::states_between(thread->states, begin, end, begin_hint, end_hint);
    }
    /// Its begin, or that of its process if it was inherited.
    std::uint64_t begin_of(std::uint32_t row) const {
      const CallColumns& calls = thread->calls;
      const std::uint64_t begin = calls.begin[row];
      const bool inherited = (calls.marks[row] & reader::kCallInherited) != 0;
      return inherited && begin < thread->forked_at ? thread->forked_at : begin;
    }
    /// Whether it is one of the calls asked about.
    bool counts(std::uint32_t row) const {
      return is_counted(thread->calls.marks[row]) && rows.counts(thread->calls, row);
    }
  };
  const TraceIndex* index = nullptr;
  std::vector<Part> parts;
  Work* work = nullptr;  ///< the same as in the parts

  /// Rows that a walk over all parts looks at.
  std::uint64_t rows() const {
    std::uint64_t sum = 0;
    for (const Part& part : parts) sum += part.rows.last - part.rows.first;
    return sum;
  }
};

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

}  // namespace karst::view
