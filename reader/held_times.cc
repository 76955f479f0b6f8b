// SPDX-License-Identifier: MIT
// One walk over the rows with the open calls on a stack. What is behind them: the latest time so far, in the order in
// which the events came.
#include "reader/held_times.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace karst::reader {
namespace {

constexpr std::uint64_t kLatest = std::numeric_limits<std::uint64_t>::max();

struct Open {
  std::uint32_t row;
  std::uint64_t end;
};

}  // namespace

void TimeHolder::pop(Calls& calls) {
  const Open open = stack_.back();
  stack_.pop_back();
  last_ = std::max(last_, open.begin + std::min(calls.duration[open.row], kLatest - open.begin));
  calls.duration[open.row] = last_ - calls.begin[open.row];
}

void TimeHolder::end_up_to(Calls& calls, std::uint32_t parent) {
  while (!stack_.empty() && stack_.back().row != parent) pop(calls);
}

void TimeHolder::hold(Calls& calls, std::size_t first, std::size_t end) {
  for (std::size_t row = first; row < end; ++row) {
    end_up_to(calls, calls.parent[row]);
    const std::uint64_t begin = calls.begin[row];
    last_ = std::max(last_, begin);
    calls.begin[row] = last_;
    stack_.push_back({static_cast<std::uint32_t>(row), begin});
  }
}

void TimeHolder::hold_notes(Calls& calls, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Note& note = calls.notes[i];
    last_note_ = std::max(last_note_, note.ticks);
    if (note.row != kNoParent) last_note_ = std::max(last_note_, calls.begin[note.row]);
    note.ticks = last_note_;
  }
}

void TimeHolder::number_rows_anew() {
  for (std::size_t i = 0; i < stack_.size(); ++i) stack_[i].row = static_cast<std::uint32_t>(i);
}

void hold_times(Calls& calls) {
  TimeHolder holder(calls.first_ticks);
  holder.hold(calls, 0, calls.size());
  holder.end_up_to(calls, kNoParent);
  holder.hold_notes(calls, calls.notes.size());
}

bool times_in_order(std::span<const std::uint64_t> begin, std::span<const std::uint64_t> duration,
                    std::span<const std::uint32_t> parent) {
  std::vector<Open> stack;
  std::uint64_t last = 0;
  const auto pop = [&] {
    const std::uint64_t end = stack.back().end;
    stack.pop_back();
    if (end < last) return false;  // it does not enclose its callees
    last = end;
    return true;
  };
  for (std::size_t row = 0; row < begin.size(); ++row) {
    if (parent[row] != kNoParent && parent[row] >= row) return false;
    while (!stack.empty() && stack.back().row != parent[row])
      if (!pop()) return false;
    if (stack.empty() && parent[row] != kNoParent) return false;  // its parent had ended
    if (begin[row] < last || duration[row] > kLatest - begin[row]) return false;
    last = begin[row];
    stack.push_back({static_cast<std::uint32_t>(row), begin[row] + duration[row]});
  }
  while (!stack.empty())
    if (!pop()) return false;
  return true;
}

}  // namespace karst::reader
