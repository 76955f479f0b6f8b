// SPDX-License-Identifier: MIT
#include "answers/flows.h"

#include <fmt/format.h>

#include "base/plain_name.h"
#include "base/text.h"

namespace karst::answers {
namespace {

FunctionRef call_of_step(const FlowRow& row, const analysis::FlowStep& step) { return {row.of.process, step.function}; }

std::string name_of_step(const FlowRow& row, const analysis::FlowStep& step) {
  if (step.function == 0) return "no call";
  return row.trace.function(row.trace.processes()[row.of.process], step.function).name;
}

Value longest_gap(const FlowRow& row) {
  const std::size_t at = row.of.longest_gap();
  return at == row.of.steps.size() ? Value() : value_of(row.times.ns(row.of.gap(at)));
}

std::string place_of_longest_gap(const FlowRow& row) {
  const std::size_t at = row.of.longest_gap();
  if (at == row.of.steps.size()) return {};
  if (row.of.coroutine != 0) return fmt::format("step {}", at + 1);
  return fmt::format("{} > {}", plain_name(name_of_step(row, row.of.steps[at])),
                     plain_name(name_of_step(row, row.of.steps[at + 1])));
}

std::string flow_duration(const FlowRow& row) {
  return duration_text(row.times.ns(row.of.end - row.of.begin())) + (row.of.ended ? " " : ">");
}

}  // namespace

const Relation& flow_steps() {
  static const Relation relation{
      "steps",
      "step",
      "A row for each step of a flow",
      {field<FlowStepRow>("step", Type::kNumber, "its number in the flow, from 1 on",
                          [](const FlowStepRow& s) { return s.at + 1; }),
       field<FlowStepRow>("begin", Type::kTime, "after the trace's first event",
                          [](const FlowStepRow& s) { return s.flow.times.since_start(s.of().begin); }),
       field_if_known<FlowStepRow>("after", Type::kDuration, "the time since the step before it",
                                   [](const FlowStepRow& s) {
                                     return s.at == 0 ? Value() : value_of(s.flow.times.ns(s.flow.of.gap(s.at - 1)));
                                   },
                                   {.title = "after the last"}),
       field_if_known<FlowStepRow>(
           "duration", Type::kDuration, "how long a coroutine went on; what was said is of no length",
           [](const FlowStepRow& s) {
             return s.flow.of.coroutine == 0 ? Value() : value_of(s.flow.times.ns(s.of().end - s.of().begin));
           },
           {.title = "lasts"}),
       field<FlowStepRow>("thread", Type::kThread, "the thread that it was in",
                          [](const FlowStepRow& s) { return ThreadRef{s.of().thread}; }),
       field<FlowStepRow>("call", Type::kFunction, "the call that it was in",
                          [](const FlowStepRow& s) { return call_of_step(s.flow, s.of()); },
                          {.words = words<FlowStepRow>(
                               [](const FlowStepRow& s) { return printable(name_of_step(s.flow, s.of())); })})}};
  return relation;
}

const Relation& flows() {
  static const Relation relation{
      "flows",
      "flow",
      "A row for each flow that the program told of with karst.h, and for each C++20 coroutine that was resumed",
      {field<FlowRow>("process", Type::kProcess, "whose flow it is",
                      [](const FlowRow& r) { return ProcessRef{r.of.process}; }, {.rank = 4}),
       field<FlowRow>("flow", Type::kText, "as karst_flow(ID) says it; a coroutine's name, and where its frame was",
                      [](const FlowRow& r) { return analysis::flow_name(r.trace, r.of); }),
       field<FlowRow>("id", Type::kId, "its number; of a coroutine where its frame was",
                      [](const FlowRow& r) { return r.of.id; }, {.shown = Look::Shown::kAsked}),
       field<FlowRow>("coroutine", Type::kFlag, "whether it is one",
                      [](const FlowRow& r) { return r.of.coroutine != 0; }, {.shown = Look::Shown::kAsked}),
       field<FlowRow>("begin", Type::kTime, "after the trace's first event",
                      [](const FlowRow& r) { return r.times.since_start(r.of.begin()); }, {.rank = 3}),
       field<FlowRow>("duration", Type::kDuration, "from its first step to its last; '>': its end was not told",
                      [](const FlowRow& r) { return r.times.ns(r.of.end - r.of.begin()); },
                      {.title = "duration ", .words = words<FlowRow>(flow_duration)}),
       field<FlowRow>("ended", Type::kFlag, "whether its end was told", [](const FlowRow& r) { return r.of.ended; },
                      {.shown = Look::Shown::kAsked}),
       field<FlowRow>("step_count", Type::kCount, "calls that it went through; of a coroutine its resumptions",
                      [](const FlowRow& r) { return r.of.steps.size(); }, {.title = "steps", .rank = 2}),
       field<FlowRow>("threads", Type::kCount, "that it went through", [](const FlowRow& r) { return r.of.threads(); },
                      {.rank = 1}),
       field<FlowRow>("between", Type::kDuration,
                      "time from each step to the next, in all: of a coroutine, while it was suspended",
                      [](const FlowRow& r) { return r.times.ns(r.of.gaps()); }),
       field_if_known<FlowRow>("longest", Type::kDuration, "the longest of these times", longest_gap),
       rows<FlowRow>("steps", "its steps", flow_steps(),
                     [](const FlowRow& r, const UseRow& use) {
                       for (std::size_t at = 0; at < r.of.steps.size(); ++at) {
                         const FlowStepRow step{r, at};
                         use(&step);
                       }
                     }),
       field<FlowRow>("where", Type::kText,
                      "the calls that the longest lies between, or the step of a coroutine that it is behind",
                      place_of_longest_gap)}};
  return relation;
}

}  // namespace karst::answers
