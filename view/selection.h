// Which calls a question is about: some threads, a range of time, or what happened within one call.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "view/index.h"

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

  bool empty() const { return outer.empty() && first == last; }
  bool counts(const CallColumns& calls, std::uint32_t row) const {
    return row >= first || calls.end(row) > range.begin;
  }
};

/// Of all calls that overlap `range`.
RowRange rows_in(const CallColumns& calls, TickRange range);
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
    std::uint64_t time_of(std::uint32_t row) const {
      const CallColumns& calls = thread->calls;
      std::uint64_t begin = calls.begin[row];
      if ((calls.marks[row] & reader::kCallInherited) != 0 && begin < thread->forked_at) begin = thread->forked_at;
      return rows.range.clip(begin, calls.end(row));
    }
    /// Whether it is one of the calls asked about.
    bool counts(std::uint32_t row) const {
      return is_counted(thread->calls.marks[row]) && rows.counts(thread->calls, row);
    }
  };
  const TraceIndex* index = nullptr;
  std::vector<Part> parts;
};

/// Calls `use(row)` for every row of the range, parents first.
template <typename Use>
void each_row(const RowRange& rows, Use&& use) {
  for (const std::uint32_t row : rows.outer) use(row);
  for (std::uint32_t row = rows.first; row < rows.last; ++row) use(row);
}

}  // namespace karst::view
