// SPDX-License-Identifier: MIT
// A call's row holds rows: its callers, what it called, what was noted of it, and how it waited.
#include "engine/api/call_answers.h"

#include <algorithm>
#include <optional>

#include "engine/api/answers.h"
#include "engine/api/rows.h"
#include "engine/api/states.h"
#include "engine/protocol.h"

namespace karst::engine {
namespace {

using answers::field;
using answers::Relation;
using answers::Type;
using answers::UseRow;

struct CallInfo {
  const TraceIndex& index;
  const ThreadIndex& thread;
  CallPlace call;
  const NotedOfCall& noted;
  Children children;
  std::vector<std::uint32_t> parents;  // the innermost first
  std::optional<StatesOfCall> states;  // nothing: not known

  std::uint64_t ns(std::uint64_t ticks) const { return index.trace().clock().to_ns(ticks); }
  CallLine line(std::uint32_t row) const { return {index, thread, row}; }
};

struct CalleeRow {
  const CallInfo& in;
  const Children::ByFunction& of;
};

const Relation& callees() {
  using Row = CalleeRow;
  static const Relation relation{
      "callees",
      "callee",
      "A row for each function that a call called directly",
      {field<Row>("function", Type::kNumber, "in TraceInfo.functions", [](const Row& r) { return r.of.function; }),
       field<Row>("calls", Type::kCount, "how often", [](const Row& r) { return r.of.calls; }),
       field<Row>("total", Type::kDuration, "of these calls together",
                  [](const Row& r) { return r.in.ns(r.of.total); }),
       field<Row>("longest", Type::kNumber, "the longest of them, by its place in its thread",
                  [](const Row& r) { return r.of.longest; })}};
  return relation;
}

template <reader::StateTimes StatesOfCall::*times>
void use_times(const CallInfo& r, const UseRow& use) {
  if (r.states) each_state_times(r.index, (*r.states).*times, use);
}

void use_parents(const CallInfo& r, const UseRow& use) {
  const std::size_t told = std::min(r.parents.size(), kMaxParents);
  for (std::size_t i = told; i-- != 0;) {
    const CallLine line = r.line(r.parents[i]);
    use(&line);
  }
}

void use_callees(const CallInfo& r, const UseRow& use) {
  for (std::size_t i = 0; i < r.children.functions.size() && i < kMaxChildren; ++i) {
    const CalleeRow row{r, r.children.functions[i]};
    use(&row);
  }
}

std::vector<answers::Field> fields_of_family() {
  using Row = CallInfo;
  return {
      answers::rows<Row>("parents", "who called it, the outermost first", call_lines(), use_parents),
      field<Row>("more_parents", Type::kCount, "further out",
                 [](const Row& r) { return r.parents.size() - std::min(r.parents.size(), kMaxParents); }),
      field<Row>("children", Type::kCount, "calls that it made itself", [](const Row& r) { return r.children.count; }),
      answers::rows<Row>("callees", "functions of these, by falling total, the first ones", callees(), use_callees),
      field<Row>("more_callees", Type::kCount, "functions that are left out",
                 [](const Row& r) {
                   return r.children.functions.size() - std::min(r.children.functions.size(), kMaxChildren);
                 }),
      answers::rows<Row>("longest_children", "the longest of these calls, as recorded", call_lines(),
                         [](const Row& r, const UseRow& use) {
                           for (const std::uint32_t row : r.children.longest) {
                             const CallLine line = r.line(row);
                             use(&line);
                           }
                         }),
      field<Row>("subtree_calls", Type::kCount, "calls within it",
                 [](const Row& r) { return subtree_end(r.thread.calls, r.call.row) - r.call.row - 1; })};
}

std::vector<answers::Field> fields_of_states() {
  using Row = CallInfo;
  return {answers::row<Row>("states", "of the call; null: not known", state_times(), use_times<&StatesOfCall::all>),
          answers::row<Row>("self_states", "of the call without what it called", state_times(),
                            use_times<&StatesOfCall::own>),
          answers::rows<Row>("waits", "the longest that begin in the call", state_lines(),
                             [](const Row& r, const UseRow& use) {
                               if (!r.states) return;
                               for (const std::size_t state : r.states->waits) use_state(r.index, r.thread, state, use);
                             })};
}

struct OccurrenceAnswer {
  const TraceIndex& index;
  std::uint32_t function;
  const Occurrences& of;
};

struct OccurrenceRow {
  const TraceIndex& index;
  const CallPlace& of;

  CallLine line() const { return {index, index.threads()[of.thread], of.row}; }
};

const Relation& found_calls() {
  using Row = OccurrenceRow;
  static const Relation relation{
      "found_calls", "found_call", "A row for each call of a function that was looked for",
      answers::joined(
          {answers::fields_of<Row>(call_lines().fields, [](const Row& r) { return r.line(); }),
           {field<Row>("thread", Type::kNumber, "in TraceInfo.threads", [](const Row& r) { return r.of.thread; }),
            field<Row>("took", Type::kDuration, "without what tracing took, unless times as recorded were asked for",
                       [](const Row& r) { return r.index.trace().clock().to_ns(r.of.took); })}})};
  return relation;
}

}  // namespace

const Relation& call_infos() {
  using Row = CallInfo;
  static const Relation relation{
      "call_infos", "call_info", "A call from near",
      answers::joined(
          {answers::fields_of<Row>(call_lines().fields, [](const Row& r) { return r.line(r.call.row); }),
           {field<Row>("thread", Type::kNumber, "in TraceInfo.threads", [](const Row& r) { return r.call.thread; }),
            field<Row>("took", Type::kDuration, "without what tracing took, unless times as recorded were asked for",
                       [](const Row& r) { return r.ns(r.call.duration - r.children.cost); }),
            field<Row>("self", Type::kDuration, "of that what none of its children took",
                       [](const Row& r) { return r.ns(r.children.self); })},
           fields_of_family(),
           answers::fields_of<Row>(fields_of_noted(), [](const Row& r) -> const NotedOfCall& { return r.noted; }),
           fields_of_states()})};
  return relation;
}

void write_call(Json& json, const TraceIndex& index, const CallPlace& call, const NotedOfCall& noted, bool raw) {
  const ThreadIndex& thread = index.threads()[call.thread];
  const CallColumns& calls = thread.calls;
  const reader::Process& process = index.trace().processes()[thread.thread->process];
  const analysis::CostWithin costs = raw ? analysis::CostWithin(calls, call.row, {}, {})
                                         : analysis::CostWithin(calls, call.row, process.cost, thread.noted_costs);
  CallInfo info{index, thread, call, noted, children_of(index, thread, call.row, kMaxChildren, costs), {}, {}};
  for (std::uint32_t row = calls.parent[call.row]; row != reader::kNoParent; row = calls.parent[row])
    info.parents.push_back(row);
  info.states = states_of_call(thread, call.row, info.children.cost, info.children.self_cost);
  json.open('{');
  write_row(json, index, call_infos(), &info);
  json.close('}');
}

const Relation& occurrence_answers() {
  using Row = OccurrenceAnswer;
  static const Relation relation{
      "occurrence_answers",
      "occurrences",
      "Calls of a function next to one of them",
      {field<Row>("function", Type::kNumber, "in TraceInfo.functions", [](const Row& r) { return r.function; }),
       field<Row>("count", Type::kCount, "of its calls in all", [](const Row& r) { return r.of.count; }),
       field<Row>("rank", Type::kNumber, "of the one that was asked about, from 1 on; 0: it is none of them",
                  [](const Row& r) { return r.of.rank; }),
       answers::rows<Row>("calls", "the next ones, in the order that was asked for", found_calls(),
                          [](const Row& r, const UseRow& use) {
                            for (const CallPlace& place : r.of.calls) {
                              const OccurrenceRow row{r.index, place};
                              use(&row);
                            }
                          })}};
  return relation;
}

void write_occurrences(Json& json, const TraceIndex& index, std::uint32_t function, const Occurrences& found) {
  const OccurrenceAnswer answer{index, function, found};
  json.open('{');
  write_row(json, index, occurrence_answers(), &answer);
  json.close('}');
}

}  // namespace karst::engine
