// SPDX-License-Identifier: MIT
// What samples add up to by function: its own, with what it called, and below which traced calls.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/samples.h"
#include "analysis/selection.h"
#include "columns/selection.h"
#include "reader/trace.h"

namespace karst::analysis {

/// Samples, and the ticks that they stand for.
struct SampledTime {
  std::uint64_t samples = 0;
  std::uint64_t ticks = 0;
};

/// A function as samples have seen it.
struct FunctionSamples {
  std::uint32_t function = 0;                ///< in SampleLog::functions
  SampledTime self;                          ///< in the function itself
  SampledTime total;                         ///< with what it called; recursion counts once
  SampledTime traced;                        ///< of `self`: in the innermost traced function itself
  std::map<std::string, SampledTime> below;  ///< the rest of `self`, by traced function; "": below none

  /// The traced function of most of its own time; empty: none, "=": itself.
  std::string mostly_below() const;
};

struct SampleSums {
  std::vector<FunctionSamples> functions;  ///< that have some, most of their own time first
  SampledTime all;
  // Of all, how many:
  std::uint64_t kernel = 0;         ///< in the kernel
  std::uint64_t untraced = 0;       ///< in code below the innermost traced call, or in no call
  std::uint64_t unplaced = 0;       ///< nobody knows in which code
  std::uint64_t without_stack = 0;  ///< nobody knows in which function
  std::uint64_t tracing = 0;        ///< in recording calls
  std::uint64_t without_calls = 0;  ///< whose calls are not in the trace
};

/// Adds samples up, one by one. Use from one thread. `trace` and `functions` must outlive it.
class SampleAdder {
 public:
  /// Counts samples whose innermost call is of `functions`, if that is not null. `in_calls`: those in no call do not
  /// count. Of waits the part in `range` counts.
  SampleAdder(const reader::Trace& trace, const FunctionSet* functions, bool in_calls, const columns::TickRange& range);

  /// Of a thread, and of its calls those that are asked for.
  void add(const reader::Thread& thread, const reader::Calls& calls, const SamplePlace& place) {
    add(thread.process, place.row == reader::kNoParent ? 0 : calls.function[place.row], place);
  }
  /// Of a thread that the trace does not have.
  void add_other(const SamplePlace& place) { add(0, 0, place); }
  /// Call once.
  SampleSums take();

 private:
  /// `function`: of the innermost call, in its process; 0: there is none.
  void add(std::uint32_t process, std::uint32_t function, const SamplePlace& place);
  void count(const SamplePlace& place, std::uint64_t ticks);

  const reader::Trace& trace_;
  const FunctionSet* const functions_;
  const bool in_calls_;
  const columns::TickRange range_;
  SampleSums sums_;
  std::vector<std::uint64_t> seen_;  // by function: the last sample in whose stack it was
  std::uint64_t number_ = 0;
};

}  // namespace karst::analysis
