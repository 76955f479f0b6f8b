// The table of functions for any part of a trace, and how one function's durations spread. Over a whole trace the
// numbers are those of analysis/report.h; a test compares them.
#pragma once
#include <cstdint>
#include <vector>

#include "view/selection.h"

namespace karst::view {

/// Times in ticks.
struct FunctionStatistics {
  std::uint32_t function = 0;
  std::uint64_t calls = 0;       ///< that overlap the range
  std::uint64_t open_calls = 0;  ///< those with a begin or an end that is not known
  std::uint64_t total = 0;       ///< time within the range with the function on the stack
  std::uint64_t self = 0;        ///< the same without the traced functions it called
  std::uint64_t complete = 0;    ///< calls with both ends known; the rest is about their whole durations
  std::uint64_t sum = 0;
  std::uint64_t min = 0, max = 0;
  std::uint64_t p50 = 0, p99 = 0;                ///< exact, by the nearest rank
  reader::StateTimes total_states, self_states;  ///< of `total` and `self`; empty without Statistics::has_states
};

struct Statistics {
  std::vector<FunctionStatistics> functions;  ///< those that occur, by falling total, then by number
  std::uint64_t threads = 0;                  ///< with calls in the range
  std::uint64_t calls = 0, open_calls = 0, self = 0;
  bool has_states = false;
  reader::StateTimes states;  ///< of `self`
};

/// Memory: 8 bytes for half of the calls, or for those of the function with the most, but at least 128 MiB.
Statistics function_statistics(const Scope& scope);

/// Durations of the complete calls of one function.
struct Histogram {
  std::uint64_t calls = 0, open_calls = 0;
  std::uint64_t min = 0, max = 0, p50 = 0, p99 = 0, sum = 0;  ///< ticks
  std::vector<std::uint64_t> edges;                           ///< ticks, rising; one more than counts
  std::vector<std::uint64_t> counts;
};

/// Buckets of a quarter of an octave, from that of the shortest to that of the longest call.
Histogram duration_histogram(const Scope& scope, std::uint32_t function);

}  // namespace karst::view
