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

/// What a question is about: parts of threads of one trace.
struct Scope {
  struct Part {
    const ThreadIndex* thread = nullptr;
    std::uint32_t number = 0;  ///< of the thread in the index
    RowRange rows;
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
