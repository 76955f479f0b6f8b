// SPDX-License-Identifier: MIT
// Asks analysis::Explainer about columns that an index has, and adds where in the timeline each cause is: of its path
// the longest call within the explained one, or the call that waited.
#include "engine/api/explain.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/tracing_cost.h"
#include "analysis/value_hints.h"
#include "answers/explanation.h"
#include "engine/api/rows.h"
#include "engine/api/times.h"
#include "words/explanation.h"

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

using answers::field;
using answers::field_if_known;
using answers::FunctionRef;
using answers::Relation;
using answers::Type;
using answers::Value;
using answers::value_of;

struct ExplanationAnswer {
  const answers::ExplanationRow& of;
  const TraceIndex& index;
  const CallPlace& call;
  bool raw;
  const Longest* longest;  ///< null where there are no causes

  const ThreadIndex& thread() const { return index.threads()[call.thread]; }
  const reader::Process& process() const { return index.trace().processes()[thread().thread->process]; }
};

/// A cause, and its call: of its path the longest one, or the one that waited.
struct CauseAnswer {
  CauseAnswer(const ExplanationAnswer& answer, std::size_t cause)
      : of(answer.of.in, cause), index(answer.index), thread(answer.thread()), at(answer.longest->row_of(of.of.path)) {
    if (of.told) at = innermost_at(thread.calls, of.told->of.begin);
  }

  const answers::CauseRow of;
  const TraceIndex& index;
  const ThreadIndex& thread;
  std::uint32_t at;  ///< reader::kNoParent: the call has none

  const analysis::CallOf* waker() const {
    return of.told && of.told->of.waker.row != reader::kNoParent ? &of.told->of.waker : nullptr;
  }
};

/// Of the cause's call, if there is one.
template <typename Get>
answers::Field of_call_at(std::string key, Type type, std::string sentence, Get get) {
  return field_if_known<CauseAnswer>(std::move(key), type, std::move(sentence), [get](const CauseAnswer& r) {
    return r.at == reader::kNoParent ? Value() : value_of(get(r));
  });
}

const Relation& cause_answers() {
  using Row = CauseAnswer;
  static const Relation relation{
      "causes", "cause", answers::causes().sentence,
      answers::joined(
          {answers::fields_of<Row>(answers::causes().fields,
                                   [](const Row& r) -> const answers::CauseRow& { return r.of; }),
           {field_if_known<Row>("waker", Type::kThread, "who ended the wait, if it was in a call then",
                                [](const Row& r) {
                                  return r.waker() == nullptr ? Value() : Value(answers::ThreadRef{r.waker()->thread});
                                }),
            field_if_known<Row>(
                "waker_call", Type::kNumber, "the call that it was in, by its place in its thread",
                [](const Row& r) { return r.waker() == nullptr ? Value() : value_of(std::uint64_t{r.waker()->row}); }),
            of_call_at("at", Type::kNumber,
                       "the longest call along the path, or the one that waited, by its place in the thread",
                       [](const Row& r) { return r.at; }),
            of_call_at("at_function", Type::kFunction, "what that calls",
                       [](const Row& r) {
                         return FunctionRef{r.thread.thread->process, r.thread.calls.function[r.at]};
                       }),
            of_call_at("at_begin", Type::kTime, "when it begins",
                       [](const Row& r) { return r.index.since_origin(r.thread.calls.begin[r.at]); }),
            of_call_at("at_duration", Type::kDuration, "how long it is as recorded",
                       [](const Row& r) { return r.of.in.times.ns(r.thread.calls.duration[r.at]); }),
            of_call_at("at_depth", Type::kNumber, "its level",
                       [](const Row& r) { return r.thread.calls.depth[r.at]; })}})};
  return relation;
}

/// Those of answers::explanations() but of locks, with causes of the page's own.
std::vector<answers::Field> explanation_fields() {
  std::vector<answers::Field> fields = answers::explanations().fields;
  std::erase_if(fields, [](const answers::Field& of) { return of.key == "lock_waits" || of.key == "causes"; });
  return answers::fields_of<ExplanationAnswer>(
      std::move(fields), [](const ExplanationAnswer& r) -> const answers::ExplanationRow& { return r.of; });
}

}  // namespace

const Relation& explanation_answers() {
  using Row = ExplanationAnswer;
  static const Relation relation{
      "explanations", "explanation", "Why a call took longer than others of its function",
      answers::joined(
          {explanation_fields(),
           {answers::rows<Row>("causes", "what was different, the greatest share first", cause_answers(),
                               [](const Row& r, const answers::UseRow& use) {
                                 for (std::size_t i = 0; i < r.of.in.call.explanation().causes.size(); ++i) {
                                   const CauseAnswer row(r, i);
                                   use(&row);
                                 }
                               }),
            field<Row>("call_cost", Type::kDuration,
                       "what a call costs with the tracer; 0: not known, or not taken out",
                       [](const Row& r) {
                         return r.raw ? 0 : analysis::call_cost_ns(r.process().cost, r.index.trace().clock());
                       }),
            field<Row>(
                "call_cost_off_by", Type::kDuration, "how far a call's time may be off for it; 0: not known",
                [](const Row& r) { return analysis::call_cost_off_by_ns(r.process().cost, r.index.trace().clock()); }),
            field<Row>("index", Type::kNumber, "the call's place in its thread",
                       [](const Row& r) { return r.call.row; })}})};
  return relation;
}

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
  const words::ExplainedCall explained({trace, ref, function, index.origin(), waits.get(), calls_of}, explainer,
                                       explainer.take());
  // A call without causes may be all of a thread.
  std::optional<Longest> longest;
  if (!explained.explanation().causes.empty()) longest.emplace(explainer.functions(), its, call.row);
  const answers::Explained rows(explained);
  const answers::ExplanationRow row{rows};
  const ExplanationAnswer answer{row, index, call, raw, longest ? &*longest : nullptr};
  json.open('{');
  write_row(json, index, explanation_answers(), &answer);
  json.close('}');
}

}  // namespace karst::engine
