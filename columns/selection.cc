// SPDX-License-Identifier: MIT
#include "columns/selection.h"

#include <algorithm>

namespace karst::columns {

RowRange rows_in(const CallColumns& calls, TickRange range) {
  RowRange rows;
  rows.range = range;
  const auto first = std::lower_bound(calls.begin.begin(), calls.begin.end(), range.begin);
  const auto last = range.end == std::numeric_limits<std::uint64_t>::max()
                        ? calls.begin.end()
                        : std::lower_bound(first, calls.begin.end(), range.end);
  rows.first = static_cast<std::uint32_t>(first - calls.begin.begin());
  rows.last = static_cast<std::uint32_t>(last - calls.begin.begin());
  // What runs at the range's begin and began before it encloses the last row before it, or is that row.
  if (rows.first == 0 || range.begin >= range.end) return rows;
  for (std::uint32_t row = rows.first - 1; row != reader::kNoParent; row = calls.parent[row]) {
    if (calls.end(row) >= range.begin) rows.outer.push_back(row);
  }
  std::reverse(rows.outer.begin(), rows.outer.end());
  return rows;
}

std::uint32_t subtree_end(const CallColumns& calls, std::uint32_t row) {
  // Rows within lie behind it in one run, and begin before its end; but calls of no length may begin at its very end.
  // Whether such a one is within, its parent tells: all rows between are.
  const auto from = calls.begin.begin() + row + 1;
  auto at = static_cast<std::uint32_t>(std::lower_bound(from, calls.begin.end(), calls.end(row)) - calls.begin.begin());
  while (at < calls.size() && calls.parent[at] != reader::kNoParent && calls.parent[at] >= row) ++at;
  return at;
}

std::uint32_t innermost_at(const CallColumns& calls, std::uint64_t ticks) {
  const auto behind = std::upper_bound(calls.begin.begin(), calls.begin.end(), ticks);
  if (behind == calls.begin.begin()) return reader::kNoParent;
  auto row = static_cast<std::uint32_t>(behind - calls.begin.begin()) - 1;
  while (row != reader::kNoParent && calls.end(row) <= ticks) row = calls.parent[row];
  return row;
}

RowRange rows_of_call(const CallColumns& calls, std::uint32_t row) {
  RowRange rows;
  rows.first = row;
  rows.last = subtree_end(calls, row);
  return rows;
}

}  // namespace karst::columns
