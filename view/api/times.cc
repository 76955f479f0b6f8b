#include "view/api/times.h"

#include <memory>

#include "analysis/tracing_cost.h"

namespace karst::view {
namespace {

struct PartTimes {
  query::ThreadCalls calls;
  reader::Column<std::uint64_t> taken;
  std::vector<query::WholeCost> beyond;
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

CallColumns ThreadTimes::of(const ThreadIndex& thread) {
  if (raw_) return thread.calls;
  return analysis::without_cost(thread.calls, process_of(index_, thread).cost, thread.noted_costs, taken_);
}

CallColumns ThreadTimes::within(const ThreadIndex& thread, std::uint32_t row) {
  if (raw_) return thread.calls;
  beyond_.clear();
  return analysis::without_cost(thread.calls, rows_of_call(thread.calls, row), process_of(index_, thread).cost,
                                thread.noted_costs, taken_, beyond_);
}

}  // namespace karst::view
