// SPDX-License-Identifier: MIT
// One call from near: what it called, and the calls of the same function before and after it.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "analysis/tracing_cost.h"
#include "answers/relation.h"
#include "engine/index/scope.h"

namespace karst::engine {

/// What a call called directly.
struct Children {
  struct ByFunction {
    std::uint32_t function = 0;
    std::uint64_t calls = 0;
    std::uint64_t total = 0;    ///< ticks
    std::uint32_t longest = 0;  ///< row
  };
  std::uint64_t count = 0;
  std::uint64_t self = 0;              ///< ticks of the call that are none of theirs
  std::uint64_t cost = 0;              ///< ticks of the call's duration that tracing took
  std::uint64_t self_cost = 0;         ///< ... of those that are none of its children's
  std::vector<ByFunction> functions;   ///< by falling `total`
  std::vector<std::uint32_t> longest;  ///< rows of the longest, at most `most`, by falling duration as recorded
};
/// `costs`: of `row` and what is within it. Times are without them.
Children children_of(const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row, std::size_t most,
                     const analysis::CostWithin& costs);

/// A call anywhere in the trace.
struct CallPlace {
  std::uint32_t thread = 0;
  std::uint32_t row = 0;
  std::uint64_t begin = 0;
  std::uint64_t duration = 0;  ///< as recorded
  std::uint64_t took = 0;      ///< without the tracer's cost, if that was asked for
};

/// A row of call_lines(), which tells of a call beside something else.
struct CallLine {
  const TraceIndex& index;
  const ThreadIndex& thread;
  std::uint32_t row;
};
const answers::Relation& call_lines();

enum class OccurrenceOrder { kTime, kDuration };

struct Occurrences {
  std::uint64_t count = 0;  ///< of the function's calls in the scope
  std::uint64_t rank = 0;   ///< of the call asked about, from 1; 0: it is none of them
  std::vector<CallPlace> calls;
};

/// Ticks, both included.
struct Durations {
  double least = 0;
  double most = std::numeric_limits<double>::max();
};

/// The calls of `function` next to `around` (or from the start of the order): by time earlier ones first, by duration
/// longer ones first; `backwards` goes the other way. Those alone that took from least to most, which are ticks;
/// `count` is of these too. How long they took is as the scope has it. One pass over its calls.
Occurrences occurrences(const Scope& scope, std::uint32_t function, OccurrenceOrder order, bool backwards,
                        std::optional<CallPlace> around, std::size_t most, Durations durations = {});

}  // namespace karst::engine
