// SPDX-License-Identifier: MIT
// Times without the tracer's cost in them (analysis/tracing_cost.h).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/index/scope.h"
#include "reader/model.h"

namespace karst::engine {

/// The same calls, whose times are without what tracing cost in the range. The result owns what that takes: 8 bytes for
/// each call. Nothing of use once its work is stopped. `cost`: of a call, in all processes; none: what each measured.
Scope without_cost(Scope scope, const std::optional<reader::CallCost>& cost = {});

/// The cost to compare by, where something of another trace stands beside what is asked about (null: nothing does).
std::optional<reader::CallCost> cost_beside(const TraceIndex& index, const TraceIndex* beside);

/// The calls of one thread at a time. What it returns goes with the next question to it.
class ThreadTimes {
 public:
  /// `raw`: the cost stays in. `cost`: as for without_cost().
  ThreadTimes(const TraceIndex& index, bool raw, const std::optional<reader::CallCost>& cost = {})
      : index_(index), raw_(raw), cost_(cost) {}

  CallColumns of(const ThreadIndex& thread);
  /// Of the row and what is within it alone.
  CallColumns within(const ThreadIndex& thread, std::uint32_t row);

 private:
  const reader::CallCost& cost_of(const ThreadIndex& thread) const;

  const TraceIndex& index_;
  bool raw_;
  std::optional<reader::CallCost> cost_;
  reader::Column<std::uint64_t> taken_;
  std::vector<columns::WholeCost> beyond_;
};

}  // namespace karst::engine
