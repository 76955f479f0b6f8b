// SPDX-License-Identifier: MIT
// Calls that were left by the jump of a tail call (reader::kCallLeft): their time ends at the jump. What they jumped to
// may not be traced, and then nothing records its end. The thread's next event comes after it, so that is a bound.
#pragma once
#include <algorithm>
#include <cstdint>

#include "columns/columns.h"

namespace karst::columns {

/// The first row behind `row` that is not inside it; the number of rows if there is none. Most calls are small, so it
/// is looked for near by first.
inline std::uint32_t row_behind(const CallColumns& calls, std::uint32_t row) {
  const std::uint64_t end = calls.end(row);
  const auto count = static_cast<std::uint32_t>(calls.size());
  std::uint32_t from = row + 1;
  for (std::uint32_t step = 1; from < count && calls.begin[from] < end; step *= 2) {
    if (count - from <= step || calls.begin[from + step] >= end) {
      const auto behind = calls.begin.begin() + std::min(from + step, count);
      return static_cast<std::uint32_t>(std::lower_bound(calls.begin.begin() + from, behind, end) -
                                        calls.begin.begin());
    }
    from += step;
  }
  return from;
}

/// Ticks until which a call that was left may have lasted, if it jumped to code that calls nothing traced: the begin of
/// the call beside it, or its caller's end. Its own end where it has neither.
inline std::uint64_t left_until(const CallColumns& calls, std::uint32_t row) {
  const std::uint32_t behind = row_behind(calls, row);
  const std::uint32_t parent = calls.parent[row];
  const bool is_last = behind == calls.size();
  if (parent == reader::kNoParent) return is_last ? calls.end(row) : calls.begin[behind];
  return std::max(calls.end(row), is_last ? calls.end(parent) : std::min(calls.begin[behind], calls.end(parent)));
}

}  // namespace karst::columns
