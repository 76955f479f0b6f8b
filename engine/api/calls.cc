// SPDX-License-Identifier: MIT
#include "engine/api/calls.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <unordered_map>

namespace karst::engine {
namespace {

// In the order asked for; no two calls are equal.
bool before(const CallPlace& a, const CallPlace& b, OccurrenceOrder order) {
  if (order == OccurrenceOrder::kTime) return std::tie(a.begin, a.thread, a.row) < std::tie(b.begin, b.thread, b.row);
  if (a.took != b.took) return a.took > b.took;
  return std::tie(a.begin, a.thread, a.row) < std::tie(b.begin, b.thread, b.row);
}

}  // namespace

Children children_of(const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row, std::size_t most,
                     const analysis::CostWithin& costs) {
  const CallColumns& calls = thread.calls;
  Children result;
  std::unordered_map<std::uint32_t, Children::ByFunction> by_function;
  std::uint64_t all_units = costs.own_units(row);
  std::uint64_t of_children = 0, cost_of_children = 0;  // ticks, as recorded and of tracing
  const auto longer = [&](std::uint32_t a, std::uint32_t b) {
    return calls.duration[a] != calls.duration[b] ? calls.duration[a] > calls.duration[b] : a < b;
  };
  const auto add = [&](std::uint32_t child) {
    ++result.count;
    of_children += calls.duration[child];
    const std::uint32_t function = index.function_of(thread, child);
    const auto [at, fresh] = by_function.try_emplace(function, Children::ByFunction{function, 0, 0, child});
    const std::uint64_t units = costs.units(child);
    const std::uint64_t cost = costs.ticks(child, units);
    all_units += costs.units_of_caller(child, units);
    ++at->second.calls;
    at->second.total += calls.duration[child] - cost;
    cost_of_children += cost;
    if (!fresh && calls.duration[child] > calls.duration[at->second.longest]) at->second.longest = child;
    if (result.longest.size() < most) {
      result.longest.push_back(child);
      std::push_heap(result.longest.begin(), result.longest.end(), longer);
    } else if (most != 0 && longer(child, result.longest.front())) {
      std::pop_heap(result.longest.begin(), result.longest.end(), longer);
      result.longest.back() = child;
      std::push_heap(result.longest.begin(), result.longest.end(), longer);
    }
  };
  // Children lie side by side in the lane below, unless the lane could not take them.
  const std::uint32_t depth = calls.depth[row] + 1U;
  if (depth < 65535) {
    if (depth < thread.lanes.depths()) {
      const auto lane = thread.lanes.rows(depth);
      auto at = std::upper_bound(lane.begin(), lane.end(), row);
      for (; at != lane.end() && calls.parent[*at] == row; ++at) add(*at);
    }
  } else {
    for (std::uint32_t child = row + 1, end = subtree_end(calls, row); child < end; ++child) {
      if (calls.parent[child] == row) add(child);
    }
  }
  const std::uint64_t self = calls.duration[row] - std::min(of_children, calls.duration[row]);
  result.cost = costs.ticks(row, all_units);
  result.self_cost = std::min(result.cost - std::min(cost_of_children, result.cost), self);
  result.self = self - result.self_cost;
  std::sort_heap(result.longest.begin(), result.longest.end(), longer);
  for (const auto& [function, sums] : by_function) result.functions.push_back(sums);
  std::sort(result.functions.begin(), result.functions.end(),
            [](const Children::ByFunction& a, const Children::ByFunction& b) {
              return a.total != b.total ? a.total > b.total : a.function < b.function;
            });
  return result;
}

const answers::Relation& call_lines() {
  using answers::field;
  using answers::Type;
  using Row = CallLine;
  static const answers::Relation relation{
      "call_lines",
      "call_line",
      "A row for each call",
      {field<Row>("index", Type::kNumber, "its place in its thread", [](const Row& r) { return r.row; }),
       field<Row>("function", Type::kNumber, "in TraceInfo.functions",
                  [](const Row& r) { return r.index.function_of(r.thread, r.row); }),
       field<Row>("begin", Type::kTime, "when it was called",
                  [](const Row& r) { return r.index.since_origin(r.thread.calls.begin[r.row]); }),
       field<Row>("duration", Type::kDuration, "how long it took, as recorded",
                  [](const Row& r) { return r.index.trace().clock().to_ns(r.thread.calls.duration[r.row]); }),
       field<Row>("flags", Type::kNumber, "of the call", [](const Row& r) { return r.thread.calls.marks[r.row]; }),
       field<Row>("depth", Type::kNumber, "its level", [](const Row& r) { return r.thread.calls.depth[r.row]; })}};
  return relation;
}

Occurrences occurrences(const Scope& scope, std::uint32_t function, OccurrenceOrder order, bool backwards,
                        std::optional<CallPlace> around, std::size_t most, Durations durations) {
  Occurrences result;
  if (around)
    for (const Scope::Part& part : scope.parts)
      if (part.number == around->thread && part.rows.has(around->row)) around->took = part.duration_of(around->row);
  bool found = false;
  std::uint64_t earlier = 0;
  std::mutex mutex;
  // Whether `a` comes sooner on the way that is walked.
  const auto sooner = [&](const CallPlace& a, const CallPlace& b) {
    return backwards ? before(b, a, order) : before(a, b, order);
  };
  run_parallel(scope.parts.size(), [&](std::size_t i) {
    const Scope::Part& part = scope.parts[i];
    const CallColumns& calls = part.thread->calls;
    std::vector<CallPlace> heap;  // its top is the last of them on the way
    std::uint64_t count = 0;
    std::uint64_t ahead = 0;
    bool here = false;
    each_row(part.rows, [&](std::uint32_t row) {
      if (part.function(row) != function || !part.counts(row)) return;
      const std::uint64_t took = part.duration_of(row);
      const auto ticks = static_cast<double>(took);
      if (ticks < durations.least || ticks > durations.most) return;
      ++count;
      const CallPlace place{part.number, row, calls.begin[row], calls.duration[row], took};
      if (around) {
        if (place.thread == around->thread && row == around->row) here = true;
        if (before(place, *around, order)) ++ahead;
        if (!sooner(*around, place)) return;
      }
      if (heap.size() == most) {
        if (most == 0 || !sooner(place, heap.front())) return;
        std::pop_heap(heap.begin(), heap.end(), sooner);
        heap.pop_back();
      }
      heap.push_back(place);
      std::push_heap(heap.begin(), heap.end(), sooner);
    });
    const std::lock_guard lock(mutex);
    result.count += count;
    earlier += ahead;
    found = found || here;
    result.calls.insert(result.calls.end(), heap.begin(), heap.end());
  });
  std::sort(result.calls.begin(), result.calls.end(), sooner);
  if (result.calls.size() > most) result.calls.resize(most);
  if (found) result.rank = earlier + 1;
  return result;
}

}  // namespace karst::engine
