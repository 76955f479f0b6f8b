// SPDX-License-Identifier: MIT
// What a question is about: parts of the threads of a trace.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "columns/columns.h"
#include "columns/selection.h"
#include "columns/workers.h"
#include "reader/states.h"

namespace karst::columns {

/// A thread's calls, and what it takes to ask about their times. Views what somebody else owns.
struct ThreadCalls {
  CallColumns calls;
  std::uint64_t forked_at = 0;                   ///< start of the process; calls that it inherited began before
  const reader::ThreadStates* states = nullptr;  ///< null: nothing is known of them
};

/// Which part of a time: all of it, or what of it a thread spent so.
enum class TimeOf { kAll, kRunning, kRunnable, kBlocked };

inline std::uint64_t part_of(const reader::StateTimes& times, TimeOf what) {
  if (what == TimeOf::kRunnable) return times.runnable;
  return what == TimeOf::kBlocked ? times.blocked : times.running;
}

/// The tracer's cost is taken out of the time on a CPU, and what is more than that out of the greatest of the others.
/// The four together lose just that, so that they are the time; the first may wrap below 0.
inline void take_cost_out(reader::StateTimes& times, std::uint64_t cost) {
  const std::uint64_t running = std::min(cost, times.running);
  const std::uint64_t rest = cost - running;
  std::uint64_t& greatest = times.blocked > times.runnable && times.blocked > times.unknown ? times.blocked
                            : times.runnable > times.unknown                                ? times.runnable
                                                                                            : times.unknown;
  times.running -= running;
  (greatest >= rest ? greatest : times.running) -= rest;
}

/// What a call that goes beyond its question's range cost, also outside of it.
struct WholeCost {
  std::uint32_t row = 0;
  std::uint64_t ticks = 0;
};

struct Scope {
  struct Part {
    const ThreadCalls* thread = nullptr;
    std::uint32_t number = 0;  ///< of the thread in its trace
    RowRange rows;
    std::span<const std::uint32_t> function_of{};  ///< numbers of functions, by the ids in the columns
    /// Of all that go beyond, in order of rows, where the columns have what they cost in the range. Else empty.
    std::span<const WholeCost> beyond{};
    /// Rows, rising, that are parents of others alone: they come again with a later part (reader/pieces.h).
    std::span<const std::uint32_t> open{};

    std::uint32_t function(std::uint32_t row) const { return function_of[thread->calls.function[row]]; }
    /// Time of a call that is this process's and in the range, without the tracer's cost. Sums of it are true, though
    /// one may wrap below 0: the cost is a mean.
    std::uint64_t time_of(std::uint32_t row) const {
      return rows.range.clip(begin_of(row), thread->calls.end(row)) - thread->calls.cost(row);
    }
    /// How long a call took, also outside of the range, without the tracer's cost.
    std::uint64_t duration_of(std::uint32_t row) const {
      return reader::without_cost(thread->calls.duration[row], whole_cost(row, thread->calls.cost(row)));
    }
    /// `cost`: what the columns say.
    std::uint64_t whole_cost(std::uint32_t row, std::uint64_t cost) const {
      if (beyond.empty() || (row >= rows.first && thread->calls.end(row) <= rows.range.end)) return cost;
      const auto at = std::lower_bound(beyond.begin(), beyond.end(), row,
                                       [](const WholeCost& a, std::uint32_t b) { return a.row < b; });
      return at != beyond.end() && at->row == row ? at->ticks : cost;
    }
    /// time_of() told apart by states. The hints are as of ThreadStates::before.
    reader::StateTimes states_of(std::uint32_t row, std::size_t& begin_hint, std::size_t& end_hint) const {
      const std::uint64_t begin = std::max(begin_of(row), rows.range.begin);
      const std::uint64_t end = std::min(thread->calls.end(row), rows.range.end);
      reader::StateTimes times;
      if (end > begin) times = reader::states_between(thread->states, begin, end, begin_hint, end_hint);
      take_cost_out(times, thread->calls.cost(row));
      return times;
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
  std::vector<Part> parts;
  std::size_t functions = 0;  ///< their numbers are below
  bool has_states = false;    ///< the trace has states, if not of every thread
  Workers workers{};
  Work* work = nullptr;  ///< the same as in the parts

  /// Rows that a walk over all parts looks at.
  std::uint64_t rows() const {
    std::uint64_t sum = 0;
    for (const Part& part : parts) sum += part.rows.last - part.rows.first;
    return sum;
  }
};

}  // namespace karst::columns
