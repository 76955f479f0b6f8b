// SPDX-License-Identifier: MIT
#include <set>
#include <utility>

#include "analysis/tracing_cost.h"
#include "analysis/waits.h"
#include "export/export.h"

namespace karst::exporting {

Remark remark_on(std::uint8_t marks) {
  Remark remark;
  const bool begin = (marks & reader::kCallOpenBegin) != 0;
  const bool end = (marks & reader::kCallOpenEnd) != 0;
  if (begin || end) remark.open = begin && end ? "begin and end" : begin ? "begin" : "end";
  if ((marks & reader::kCallUnwound) != 0) remark.ended = "unwound";
  if ((marks & reader::kCallJumped) != 0) remark.ended = "jumped";
  if ((marks & reader::kCallTail) != 0) remark.ended = reader::call_is_cut(marks) ? "cut" : "tail";
  if (reader::call_is_left(marks)) remark.ended = "left";
  if ((marks & reader::kCallSwitched) != 0) remark.ended = "switched";
  return remark;
}

reader::Calls calls_of(const reader::Trace& trace, const reader::Thread& thread, const Options& options) {
  reader::Calls calls = reader::rebuild_calls(trace, thread);
  analysis::filter_calls(calls, thread.process, options.filter);
  return calls;
}

reader::Calls timed_calls_of(const reader::Trace& trace, const reader::Thread& thread, const Options& options) {
  reader::Calls calls = reader::rebuild_calls(trace, thread);
  analysis::CallFilter rest = options.filter;
  if (rest.request) analysis::cut_to_request(calls, *std::exchange(rest.request, std::nullopt));
  analysis::take_cost_out(calls, trace.processes()[thread.process].cost, rest.range);
  analysis::filter_calls(calls, thread.process, rest);
  if (options.functions != nullptr) {
    analysis::CallFilter within;
    within.below = options.functions;
    analysis::filter_calls(calls, thread.process, within);
  }
  return calls;
}

std::optional<std::uint64_t> wall_ns(const reader::Trace& trace, std::uint64_t ticks) {
  if (trace.clock().pairs.empty()) return std::nullopt;
  const reader::ClockPair& pair = trace.clock().pairs.front();
  return ticks >= pair.ticks ? pair.realtime_ns + trace.clock().to_ns(ticks - pair.ticks)
                             : pair.realtime_ns - trace.clock().to_ns(pair.ticks - ticks);
}

std::vector<analysis::Flow> flows_of(const reader::Trace& trace, const Options& options) {
  std::vector<analysis::Flow> flows = analysis::flows_of(trace, options.threads);
  if (!options.filter.range) return flows;
  const columns::TickRange range = *options.filter.range;
  for (analysis::Flow& flow : flows)
    std::erase_if(flow.steps, [range](const analysis::FlowStep& step) {
      return step.end < range.begin || step.begin >= range.end;
    });
  std::erase_if(flows, [](const analysis::Flow& flow) { return flow.steps.empty(); });
  return flows;
}

std::vector<analysis::Request> requests_of(const reader::Trace& trace, const Options& options) {
  analysis::RequestFinder finder(trace, nullptr, options.filter.range, true);
  for (const reader::Thread* thread : options.threads) {
    if (!analysis::tells_of_requests(trace, *thread)) continue;
    const reader::Calls calls = reader::rebuild_calls(trace, *thread);
    finder.add(*thread, calls, calls);
  }
  return finder.take();
}

std::vector<Waking> wakings_of(const reader::Trace& trace, const Options& options) {
  std::vector<Waking> wakings;
  if (trace.states().empty()) return wakings;
  const columns::TickRange range = options.filter.range.value_or(columns::TickRange());
  const std::set<const reader::Thread*> exported(options.threads.begin(), options.threads.end());
  const analysis::Waits waits(trace, 1);
  for (const reader::Thread* const thread : options.threads)
    for (const analysis::Wait& wait : waits.of(*thread))
      if (wait.state == reader::ThreadState::kBlocked && wait.waker.row != reader::kNoParent &&
          exported.contains(wait.waker.thread) && wait.end >= range.begin && wait.end < range.end)
        wakings.push_back({wait.waker.thread, thread, wait.end});
  return wakings;
}

std::span<const Format> formats() {
#define KARST_FORMAT(name, description) {#name, description, export_##name},
  static constexpr Format kFormats[] = {KARST_EXPORT_FORMATS(KARST_FORMAT)};
#undef KARST_FORMAT
  return kFormats;
}

}  // namespace karst::exporting
