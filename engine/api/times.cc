// SPDX-License-Identifier: MIT
#include "engine/api/times.h"

#include <array>
#include <memory>

#include "analysis/tracing_cost.h"

namespace karst::engine {
namespace {

struct PartTimes {
  columns::ThreadCalls calls;
  reader::Column<std::uint64_t> taken;
  std::vector<columns::WholeCost> beyond;
};

const reader::Process& process_of(const TraceIndex& index, const ThreadIndex& thread) {
  return index.trace().processes()[thread.thread->process];
}

}  // namespace

Scope without_cost(Scope scope, const std::optional<reader::CallCost>& cost) {
  const auto parts = std::make_shared<std::vector<PartTimes>>(scope.parts.size());
  scope.workers.run(parts->size(), [&](std::size_t i, std::size_t) {
    if (is_stopped(scope.work)) return;
    Scope::Part& part = scope.parts[i];
    const ThreadIndex& thread = scope.thread(part);
    PartTimes& own = (*parts)[i];
    own.calls = thread;
    own.calls.calls =
        analysis::without_cost(thread.calls, part.rows, cost.value_or(process_of(*scope.index, thread).cost),
                               thread.noted_costs, own.taken, own.beyond);
    part.thread = &own.calls;
    part.beyond = own.beyond;
  });
  scope.owned = parts;
  return scope;
}

std::optional<reader::CallCost> cost_beside(const TraceIndex& index, const TraceIndex* beside) {
  if (beside == nullptr || beside == &index) return {};
  const std::array traces = {&index.trace(), &beside->trace()};
  return analysis::cost_to_compare(traces);
}

const reader::CallCost& ThreadTimes::cost_of(const ThreadIndex& thread) const {
  return cost_ ? *cost_ : process_of(index_, thread).cost;
}

CallColumns ThreadTimes::of(const ThreadIndex& thread) {
  if (raw_) return thread.calls;
  return analysis::without_cost(thread.calls, cost_of(thread), thread.noted_costs, taken_);
}

CallColumns ThreadTimes::within(const ThreadIndex& thread, std::uint32_t row) {
  if (raw_) return thread.calls;
  beyond_.clear();
  return analysis::without_cost(thread.calls, rows_of_call(thread.calls, row), cost_of(thread), thread.noted_costs,
                                taken_, beyond_);
}

}  // namespace karst::engine
