#include "engine/api/flows.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "engine/index/noted_threads.h"
#include "engine/tiles/tracks.h"
#include "format/note.h"

namespace karst::engine {
namespace {

using analysis::Flow;
using analysis::FlowStep;
using format::NoteKind;

bool says_steps(const ThreadIndex& thread) {
  return thread.has_notes(NoteKind::kFlow) || thread.has_notes(NoteKind::kFlowEnd);
}

bool may_have_steps(const ThreadIndex& thread) { return says_steps(thread) || thread.has_notes(NoteKind::kArguments); }

std::map<const reader::Thread*, std::uint32_t> numbers_of_threads(const TraceIndex& index) {
  std::map<const reader::Thread*, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < index.threads().size(); ++i) numbers[index.threads()[i].thread] = i;
  return numbers;
}

void write_step(Json& json, const TraceIndex& index, const FlowStep& step, std::uint64_t gap) {
  const auto at = std::find_if(index.threads().begin(), index.threads().end(),
                               [&](const ThreadIndex& thread) { return thread.thread == step.thread; });
  if (at == index.threads().end()) {
    json.null();
    return;
  }
  json.open('{').field("thread", at - index.threads().begin()).field("begin", index.since_origin(step.begin));
  json.field("end", index.since_origin(step.end)).field("gap", index.trace().clock().to_ns(gap));
  if (step.row != reader::kNoParent && step.row < at->calls.size()) {
    json.field("index", step.row).field("function", index.function_of(*at, step.row));
    json.field("call_begin", index.since_origin(at->calls.begin[step.row]));
    json.field("call_duration", index.trace().clock().to_ns(at->calls.duration[step.row]));
    json.field("depth", at->calls.depth[step.row]);
  }
  json.close('}');
}

}  // namespace

bool has_flows(const TraceIndex& index) {
  return std::any_of(index.threads().begin(), index.threads().end(), [&](const ThreadIndex& thread) {
    return says_steps(thread) || (thread.has_notes(NoteKind::kArguments) &&
                                  analysis::notes_coroutines(index.trace().processes()[thread.thread->process]));
  });
}

std::shared_ptr<const FlowSet> FlowSet::make(const TraceIndex& index, Work* work) {
  analysis::FlowFinder finder(index.trace());
  for (const ThreadIndex& thread : index.threads()) {
    if (!may_have_steps(thread)) continue;
    const NotedCalls noted = noted_calls(index, thread, work);
    if (noted.calls == nullptr || !go_on(work, noted.calls->size())) return nullptr;
    finder.add(*thread.thread, *noted.calls);
  }
  auto made = std::make_shared<FlowSet>();
  made->flows = finder.take();
  const auto numbers = numbers_of_threads(index);
  for (std::uint32_t flow = 0; flow < made->flows.size(); ++flow)
    for (std::uint32_t step = 0; step < made->flows[flow].steps.size(); ++step) {
      const FlowStep& of = made->flows[flow].steps[step];
      const auto thread = numbers.find(of.thread);
      if (thread != numbers.end() && of.row != reader::kNoParent)
        made->places.push_back({thread->second, of.row, flow, step});
    }
  std::sort(made->places.begin(), made->places.end());
  return made;
}

void write_flows(Json& json, const TraceIndex& index, const FlowSet& flows, const CallPlace& call) {
  const FlowSet::Place from{call.thread, call.row, 0, 0};
  auto at = std::lower_bound(flows.places.begin(), flows.places.end(), from);
  const auto end = std::find_if(at, flows.places.end(), [&](const FlowSet::Place& place) {
    return place.thread != call.thread || place.row != call.row;
  });
  json.open('{').field("count", end - at).key("flows").open('[');
  for (std::size_t i = 0; at != end && i < kMaxFlowsOfCall; ++at, ++i) {
    const Flow& flow = flows.flows[at->flow];
    const std::size_t step = at->step;
    json.open('{').field("name", flow_name(index.trace(), flow)).field("coroutine", flow.coroutine != 0);
    json.field("step", step + 1).field("steps", flow.steps.size()).field("ended", flow.ended);
    json.field("begin", index.since_origin(flow.steps[step].begin));
    json.field("end", index.since_origin(flow.steps[step].end));
    json.key("before");
    if (step != 0)
      write_step(json, index, flow.steps[step - 1], flow.gap(step - 1));
    else
      json.null();
    json.key("after");
    if (step + 1 < flow.steps.size())
      write_step(json, index, flow.steps[step + 1], flow.gap(step));
    else
      json.null();
    json.close('}');
  }
  json.close(']').close('}');
}

}  // namespace karst::engine
