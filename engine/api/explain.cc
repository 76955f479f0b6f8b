// Asks analysis::Explainer about columns that an index has, and adds where in the timeline each cause is: of its path
// the longest call within the explained one, or the call that waited.
#include "engine/api/explain.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/explain_words.h"
#include "analysis/tracing_cost.h"
#include "analysis/value_hints.h"
#include "engine/api/states.h"
#include "engine/api/times.h"

namespace karst::engine {
namespace {

/// For each path of functions below a call, the longest call along it.
class Longest {
 public:
  Longest(const analysis::FunctionList& functions, const ThreadIndex& thread, std::uint32_t root) {
    const CallColumns& calls = thread.calls;
    const std::uint32_t end = subtree_end(calls, root);
    std::vector<std::uint32_t> node_of(end - root);  // by row
    rows_.push_back(root);
    for (std::uint32_t row = root + 1; row < end; ++row) {
      const std::pair key{node_of[calls.parent[row] - root], functions.of(thread.thread->process, calls.function[row])};
      const auto [at, fresh] = nodes_.try_emplace(key, static_cast<std::uint32_t>(rows_.size()));
      if (fresh) rows_.push_back(row);
      if (calls.duration[row] > calls.duration[rows_[at->second]]) rows_[at->second] = row;
      node_of[row - root] = at->second;
    }
  }
  /// reader::kNoParent: there is none.
  std::uint32_t row_of(const std::vector<std::uint32_t>& path) const {
    std::uint32_t node = 0;
    for (const std::uint32_t function : path) {
      const auto at = nodes_.find({node, function});
      if (at == nodes_.end()) return reader::kNoParent;
      node = at->second;
    }
    return rows_[node];
  }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> nodes_;  // by caller's node and function
  std::vector<std::uint32_t> rows_;                                         // by node
};

/// Numbers of the index, by the explainer's.
std::vector<std::int64_t> numbers_of(const TraceIndex& index, const analysis::FunctionList& functions) {
  std::vector<std::int64_t> numbers(functions.functions().size(), -1);
  for (std::uint32_t process = 0; process < index.trace().processes().size(); ++process) {
    const auto& of_process = index.functions().of_process(process);
    for (std::uint32_t id = 0; id < of_process.size(); ++id) {
      if (functions.has(process, id)) numbers[functions.of(process, id)] = of_process[id];
    }
  }
  return numbers;
}

void write_place(Json& json, const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row) {
  const CallColumns& calls = thread.calls;
  json.key("at").open('{').field("index", row).field("function", index.function_of(thread, row));
  json.field("begin", index.since_origin(calls.begin[row]));
  json.field("duration", index.trace().clock().to_ns(calls.duration[row])).field("flags", calls.marks[row]);
  json.field("depth", calls.depth[row]).close('}');
}

}  // namespace

void write_explanation(Json& json, const TraceIndex& index, const CallPlace& call, bool raw, Values& values,
                       Work* work) {
  const reader::Trace& trace = index.trace();
  const ThreadIndex& its = index.threads()[call.thread];
  ThreadTimes times(index, raw);
  const std::uint32_t function = its.calls.function[call.row];
  analysis::CallRef ref{its.thread, call.row, 0, call.begin, call.begin + call.duration};
  ref.duration = times.of(its).time(call.row);

  std::map<const reader::Thread*, const ThreadIndex*> index_of;
  for (const ThreadIndex& thread : index.threads()) index_of.emplace(thread.thread, &thread);
  const auto calls_of = [&](const reader::Thread& thread) {
    const auto at = index_of.find(&thread);
    return at == index_of.end() ? columns::CallColumns() : at->second->calls;
  };
  std::unique_ptr<analysis::Waits> waits;
  if (!trace.states().empty()) waits = std::make_unique<analysis::Waits>(trace, 0, calls_of);

  analysis::Explainer explainer(trace, ref, function);
  expect(work, 2 * index.calls());
  for (const ThreadIndex& thread : index.threads()) {
    explainer.learn(*thread.thread, times.of(thread));
    if (!go_on(work, thread.calls.size())) return;
  }
  analysis::ValueSamples samples;
  for (const ThreadIndex& thread : index.threads()) {
    const auto noted = values.of_thread(index, thread, work);
    samples.look_at(trace, *thread.thread, noted.get());
    explainer.compare(*thread.thread, times.of(thread), waits.get(), &samples);
    if (!go_on(work, thread.calls.size())) return;
  }
  analysis::ExplainedCall explained({trace, ref, function, index.origin(), waits.get(), calls_of}, explainer,
                                    explainer.take());
  // A call without causes may be all of a thread.
  std::optional<Longest> longest;
  if (!explained.explanation().causes.empty()) longest.emplace(explainer.functions(), its, call.row);
  const std::vector<std::int64_t> numbers = numbers_of(index, explainer.functions());

  json.open('{').field("thread_index", call.thread).field("index", call.row);
  const reader::Process& process = trace.processes()[its.thread->process];
  json.field("call_cost", analysis::call_cost_ns(process.cost, trace.clock()));
  json.field("call_cost_off_by", analysis::call_cost_off_by_ns(process.cost, trace.clock())).field("raw", raw);
  explained.write(json, [&](Json& to, const analysis::Cause& cause) {
    to.list("functions", cause.path, [&](std::uint32_t number) { return numbers[number]; });
    std::uint32_t row = longest->row_of(cause.path);
    if (cause.wait) {
      row = innermost_at(its.calls, cause.wait->begin);
      to.key("waited").open('{');
      write_wait(to, index, *cause.wait);
      to.close('}');
    }
    if (row != reader::kNoParent) write_place(to, index, its, row);
  });
  json.close('}');
}

}  // namespace karst::engine
