// SPDX-License-Identifier: MIT
#include "answers/slow.h"

namespace karst::answers {
namespace {

/// Which call it is, of a row with `times`; `get(row)` gives the analysis::Outlier.
template <typename Row, typename Get>
std::vector<Field> slow_call_fields(Get get) {
  return {field<Row>("begin", Type::kTime, "after the trace's first event",
                     [get](const Row& r) { return r.times.since_start(get(r).call.begin); }, {.rank = 5}),
          field<Row>("duration", Type::kDuration, "with all it called",
                     [get](const Row& r) { return r.times.ns(get(r).call.duration); }),
          field<Row>("process", Type::kProcess, "of its thread",
                     [get](const Row& r) { return ProcessRef{get(r).call.thread->process}; }, {.rank = 4}),
          field<Row>("thread", Type::kThread, "that it was made in",
                     [get](const Row& r) { return ThreadRef{get(r).call.thread}; }, {.rank = 3})};
}

template <typename Row, typename Get>
Field slow_function(Get get) {
  return field<Row>("function", Type::kFunction, "what was called", [get](const Row& r) {
    const analysis::Outlier& of = get(r);
    return FunctionRef{of.call.thread->process, of.function};
  });
}

template <typename Row>
Field noted(std::string key, std::string sentence, std::optional<std::vector<analysis::Value>> NotedValues::*of) {
  return field_if_known<Row>(std::move(key), Type::kText, std::move(sentence),
                             [of](const Row& r) {
                               const auto& values = r.of.noted.*of;
                               return values ? value_of(analysis::values_text(*values)) : Value();
                             },
                             {.shown = Look::Shown::kAsked});
}

template <typename Row>
std::vector<Field> noted_fields() {
  return {noted<Row>("arguments", "what it was given (karst run --args)", &NotedValues::arguments),
          noted<Row>("returned", "what it returned (karst run --returns)", &NotedValues::returned)};
}

}  // namespace

const Relation& slow_steps() {
  using Row = SlowStepRow;
  static const Relation relation{"slow_steps", "slow_step",
                                 "A row for each call on the way down to where a slow call's time went",
                                 joined({{field<Row>("duration", Type::kDuration, "with all it called",
                                                     [](const Row& r) { return r.call.times.ns(r.of.duration); })},
                                         noted_fields<Row>(),
                                         {field<Row>("function", Type::kFunction, "what was called", [](const Row& r) {
                                           return FunctionRef{r.call.of.of.worst.call.thread->process, r.of.function};
                                         })}})};
  return relation;
}

const Relation& slow_calls() {
  using Row = SlowCallRow;
  const auto worst = [](const Row& r) -> const analysis::Outlier& { return r.of.of.worst; };
  static const Relation relation{
      "slow", "slow_call",
      "A row for each function, and each callee that its time went to, whose calls took far longer than usual: the "
      "slowest such call",
      joined({slow_call_fields<Row>(worst),
              {field<Row>("usual", Type::kDuration, "what the function's calls usually take",
                          [](const Row& r) { return r.times.ns(r.of.of.worst.usual); }),
               field<Row>("such_calls", Type::kCount, "such calls, this one included",
                          [](const Row& r) { return r.of.of.calls; }, {.rank = 2}),
               field<Row>("such", Type::kDuration, "how long these took together",
                          [](const Row& r) { return r.times.ns(r.of.of.duration); }, {.rank = 2})},
              noted_fields<Row>(),
              {rows<Row>("path", "from its callee down to where most of the time went", slow_steps(),
                         [](const Row& r, const UseRow& use) {
                           for (const SlowCall::Step& of : r.of.path) {
                             const SlowStepRow step{r, of};
                             use(&step);
                           }
                         })},
              fields_of<Row>(wait_fields(), [](const Row& r) { return r.wait(); }),
              {rows<Row>("chain", "who was waited for (--follow)", chain_links(),
                         [](const Row& r, const UseRow& use) {
                           for (const words::ToldLink& of : r.of.chain) {
                             const LinkRow link{r.trace, r.times, of};
                             use(&link);
                           }
                         }),
               slow_function<Row>(worst)}})};
  return relation;
}

const Relation& rare_functions() {
  using Row = RareFunctionRow;
  const auto longest = [](const Row& r) -> const analysis::Outlier& { return r.of.of.longest; };
  static const Relation relation{
      "rare", "rare_function",
      "A row for each function that is called too few times to have a usual time: its longest call",
      joined({slow_call_fields<Row>(longest),
              {field<Row>("own", Type::kDuration, "the same without the traced functions that it called",
                          [](const Row& r) { return r.times.ns(r.of.of.longest.excess()); }),
               field<Row>("calls", Type::kCount, "of the function", [](const Row& r) { return r.of.of.calls; })},
              fields_of<Row>(wait_fields(), [](const Row& r) { return r.wait(); }),
              {slow_function<Row>(longest)}})};
  return relation;
}

const Relation& left_functions() {
  using Row = LeftFunctionRow;
  const auto longest = [](const Row& r) -> const analysis::Outlier& { return r.of.of.longest; };
  static const Relation relation{
      "left", "left_function",
      "A row for each function that was left by a tail call into code that is not traced, and may have lasted far "
      "longer than usual there: its longest call",
      joined({{field<Row>("begin", Type::kTime, "after the trace's first event",
                          [longest](const Row& r) { return r.times.since_start(longest(r).call.begin); }, {.rank = 5}),
               field<Row>("most", Type::kDuration, "the longest that it can have lasted: until its thread's next event",
                          [longest](const Row& r) { return r.times.ns(longest(r).call.duration); }),
               field<Row>("usual", Type::kDuration,
                          "what it had done before the jump, and such calls usually last behind it at most",
                          [longest](const Row& r) { return r.times.ns(longest(r).usual); }),
               field<Row>("calls", Type::kCount, "of the function that were left so",
                          [](const Row& r) { return r.of.of.calls; }),
               field<Row>("process", Type::kProcess, "of its thread",
                          [longest](const Row& r) { return ProcessRef{longest(r).call.thread->process}; }, {.rank = 4}),
               field<Row>("thread", Type::kThread, "that it was made in",
                          [longest](const Row& r) { return ThreadRef{longest(r).call.thread}; }, {.rank = 3})},
              fields_of<Row>(wait_fields(), [](const Row& r) { return r.wait(); }),
              {slow_function<Row>(longest)}})};
  return relation;
}

}  // namespace karst::answers
