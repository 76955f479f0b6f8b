// SPDX-License-Identifier: MIT
// The table of functions for any part of a trace, and how durations spread. There is one such table: `karst report`,
// the viewer's server and the exported page all print this one. analysis/report.h says what its columns mean.
//
// How it is made: a walk over the rows of a part, parents first, with the stack of callers beside it (TableSums). Parts
// are added up one after the other, or by several workers whose sums are merged. Percentiles are exact, so they take a
// second walk that puts the durations of each function side by side (Durations).
#pragma once
#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "columns/scope.h"
#include "reader/column.h"

namespace karst::columns {

/// Of one function. Times in ticks.
struct FunctionSums {
  std::uint64_t calls = 0;       ///< that overlap the range
  std::uint64_t open_calls = 0;  ///< those with a begin or an end that is not known
  std::uint64_t unwound = 0;     ///< rows that an exception or a forced unwind ended
  std::uint64_t jumped = 0;      ///< ... that a longjmp ended
  std::uint64_t tail = 0;        ///< ... that ended with a tail call
  std::uint64_t left = 0;        ///< of these those that were left by its jump (columns/left.h)
  std::uint64_t left_most = 0;   ///< the longest that one of them may have lasted
  std::uint64_t total = 0;       ///< time within the range with the function on the stack
  std::uint64_t self = 0;        ///< the same without the traced functions it called; wraps if children outlast it
  std::uint64_t cost = 0;        ///< the tracer's, taken out of `total`, which may wrap below 0 by it
  std::uint64_t self_cost = 0;   ///< the same of `self`
  std::uint64_t tracing = 0;     ///< what its calls' own events cost, wherever; in 1/format::kCallCostUnit ticks
  std::uint64_t complete = 0;    ///< calls with both ends known; the rest is about their whole durations
  std::uint64_t sum = 0;         ///< may wrap below 0
  std::uint64_t min = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max = 0;
  reader::StateTimes total_states, self_states;  ///< of `total` and `self`
  bool seen = false;                             ///< has rows, if only such as do not count
};

/// Adds up parts. Use from one thread at a time.
class TableSums {
 public:
  explicit TableSums(std::size_t functions = 0) { grow(functions); }
  /// Makes room for functions below this number.
  void grow(std::size_t functions);
  /// `with_states`: also by what the thread was doing; of a thread without states that is not known.
  void add(const Scope::Part& part, bool with_states);
  void merge(const TableSums& other);

  const std::vector<FunctionSums>& functions() const { return sums_; }

 private:
  template <bool kWithStates>
  void walk(const Scope::Part& part);

  std::vector<FunctionSums> sums_;
  std::vector<std::uint32_t> active_;  // by function: calls on the stack
};

/// The durations of the complete calls of some functions, those of each side by side.
class Durations {
 public:
  struct Wanted {
    std::uint32_t function = 0;
    std::uint64_t calls = 0;  ///< complete ones in all parts that will be added
  };
  /// `functions`: their numbers are below.
  Durations(std::span<const Wanted> wanted, std::size_t functions);
  /// Several threads may add parts at once.
  void add(const Scope::Part& part);
  /// Of wanted[slot], in no order. There are holes if a stopped Work ended an add().
  std::span<std::uint64_t> of(std::size_t slot) {
    return {values_.data() + first_[slot], first_[slot + 1] - first_[slot]};
  }

 private:
  reader::Column<std::uint64_t> values_;
  std::vector<std::uint32_t> slot_of_;              // by function
  std::vector<std::size_t> first_;                  // by slot, and one more
  std::vector<std::atomic<std::uint64_t>> cursor_;  // by slot
};

/// The place of a percentile among so many values in rising order, from 0.
constexpr std::size_t rank_of(std::size_t values, std::uint64_t percent) {
  return static_cast<std::size_t>((std::uint64_t{values} * percent + 99) / 100 - 1);
}

/// Exact, by the nearest rank: p99 is the shortest duration that at least 99% of the calls don't exceed.
struct Percentiles {
  std::uint64_t p50 = 0, p99 = 0;
};
/// `durations` must not be empty.
Percentiles percentiles(std::span<const std::uint64_t> durations);
/// One of them, by the same rule; `percent` from 1 to 100.
std::uint64_t percentile(std::span<const std::uint64_t> durations, std::uint64_t percent);

struct FunctionRow : FunctionSums {
  std::uint32_t function = 0;
  Percentiles of;  ///< 0 when no call is complete, as is `min`
};

struct Table {
  std::vector<FunctionRow> functions;  ///< those that occur, by falling total, then by number
  std::uint64_t threads = 0;           ///< with calls in the range
  std::uint64_t calls = 0, open_calls = 0, self = 0;
  bool has_states = false;
  reader::StateTimes states;  ///< of `self`
};

/// Memory: 8 bytes for half of the calls, or for those of the function with the most, but at least 128 MiB.
Table table_of(const Scope& scope);

/// Durations of the complete calls of one function.
struct Histogram {
  std::uint64_t calls = 0, open_calls = 0;
  std::uint64_t min = 0, max = 0, sum = 0;  ///< ticks
  Percentiles of;
  std::vector<std::uint64_t> edges;  ///< ticks, rising; one more than counts
  std::vector<std::uint64_t> counts;
};

/// Buckets of a quarter of an octave, from that of the shortest to that of the longest call.
Histogram histogram_of(const Scope& scope, std::uint32_t function);
/// The same of durations that are at hand, all of complete calls. Reorders them.
Histogram histogram_of(std::span<std::uint64_t> durations);

}  // namespace karst::columns
