// SPDX-License-Identifier: MIT
#include "engine/api/flows.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "engine/api/rows.h"
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

using answers::field;
using answers::field_if_known;
using answers::Relation;
using answers::Type;
using answers::Value;
using answers::value_of;

/// A step before or after a call's own.
struct BesideRow {
  const TraceIndex& index;
  const FlowStep& of;
  std::uint64_t gap;  // ticks

  /// Null: the trace does not have its thread.
  const ThreadIndex* thread() const {
    const auto at = std::find_if(index.threads().begin(), index.threads().end(),
                                 [&](const ThreadIndex& thread) { return thread.thread == of.thread; });
    return at == index.threads().end() ? nullptr : &*at;
  }
  bool in_call() const { return of.row != reader::kNoParent && of.row < thread()->calls.size(); }
};

/// A flow that a call is a step of.
struct CallFlowRow {
  const TraceIndex& index;
  const Flow& of;
  std::size_t step;  // from 0 on

  const FlowStep& here() const { return of.steps[step]; }
};

struct FlowAnswer {
  const TraceIndex& index;
  const FlowSet& flows;
  std::span<const FlowSet::Place> places;  // those of the call
};

const Relation& steps_beside() {
  using Row = BesideRow;
  static const Relation relation{
      "steps_beside",
      "step_beside",
      "A row for the step before or after a call's own",
      {field<Row>("thread", Type::kThread, "that it was in",
                  [](const Row& r) { return answers::ThreadRef{r.of.thread}; }),
       field<Row>("begin", Type::kTime, "of a coroutine's resumption; when it was said",
                  [](const Row& r) { return r.index.since_origin(r.of.begin); }),
       field<Row>("end", Type::kTime, "of what was said the same",
                  [](const Row& r) { return r.index.since_origin(r.of.end); }),
       field<Row>("gap", Type::kDuration, "the time between the two",
                  [](const Row& r) { return r.index.trace().clock().to_ns(r.gap); }),
       field_if_known<Row>("index", Type::kNumber, "its call, by its place in its thread; null: it was in none",
                           [](const Row& r) { return r.in_call() ? value_of(std::uint64_t{r.of.row}) : Value(); }),
       field_if_known<Row>(
           "depth", Type::kNumber, "the call's level",
           [](const Row& r) { return r.in_call() ? value_of(r.thread()->calls.depth[r.of.row]) : Value(); }),
       field<Row>("function", Type::kFunction, "what it calls", [](const Row& r) {
         return answers::FunctionRef{r.of.thread->process, r.in_call() ? r.thread()->calls.function[r.of.row] : 0};
       })}};
  return relation;
}

void use_step(const CallFlowRow& r, std::size_t at, std::size_t gap, const answers::UseRow& use) {
  const BesideRow row{r.index, r.of.steps[at], r.of.gap(gap)};
  if (row.thread() != nullptr) use(&row);
}

const Relation& call_flows() {
  using Row = CallFlowRow;
  static const Relation relation{
      "call_flows",
      "call_flow",
      "A row for each flow that a call is a step of",
      {field<Row>("name", Type::kText, "`flow 17`, or a coroutine's name and where its frame lay",
                  [](const Row& r) { return flow_name(r.index.trace(), r.of); }),
       field<Row>("coroutine", Type::kFlag, "whether its steps are a coroutine's resumptions",
                  [](const Row& r) { return r.of.coroutine != 0; }),
       field<Row>("step", Type::kNumber, "which one the call is, from 1 on", [](const Row& r) { return r.step + 1; }),
       field<Row>("steps", Type::kCount, "of how many", [](const Row& r) { return r.of.steps.size(); }),
       field<Row>("ended", Type::kFlag, "whether its end was told", [](const Row& r) { return r.of.ended; }),
       answers::rows<Row>("before", "the step before it, if there is one", steps_beside(),
                          [](const Row& r, const answers::UseRow& use) {
                            if (r.step != 0) use_step(r, r.step - 1, r.step - 1, use);
                          }),
       answers::rows<Row>("after", "the step after it, if there is one", steps_beside(),
                          [](const Row& r, const answers::UseRow& use) {
                            if (r.step + 1 < r.of.steps.size()) use_step(r, r.step + 1, r.step, use);
                          }),
       field<Row>("begin", Type::kTime, "of this step",
                  [](const Row& r) { return r.index.since_origin(r.here().begin); }),
       field<Row>("end", Type::kTime, "of this step",
                  [](const Row& r) { return r.index.since_origin(r.here().end); })}};
  return relation;
}

}  // namespace

const Relation& flow_answers() {
  using Row = FlowAnswer;
  static const Relation relation{
      "flow_answers",
      "flow_answer",
      "Flows that a call is a step of",
      {answers::rows<Row>("flows", "the first ones", call_flows(),
                          [](const Row& r, const answers::UseRow& use) {
                            for (const FlowSet::Place& at :
                                 r.places.first(std::min(r.places.size(), kMaxFlowsOfCall))) {
                              const CallFlowRow row{r.index, r.flows.flows[at.flow], at.step};
                              use(&row);
                            }
                          }),
       field<Row>("count", Type::kCount, "of all", [](const Row& r) { return r.places.size(); })}};
  return relation;
}

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
  const auto at = std::lower_bound(flows.places.begin(), flows.places.end(), from);
  const auto end = std::find_if(at, flows.places.end(), [&](const FlowSet::Place& place) {
    return place.thread != call.thread || place.row != call.row;
  });
  const FlowAnswer answer{index, flows, {at, end}};
  json.open('{');
  write_row(json, index, flow_answers(), &answer);
  json.close('}');
}

}  // namespace karst::engine
