// SPDX-License-Identifier: MIT
#include "answers/explanation.h"

#include <cstdint>
#include <utility>

namespace karst::answers {
namespace {

/// The range and the median of values that are numbers.
Field of_numbers(std::string key, std::string sentence, std::string analysis::ValueHint::*of) {
  return field_if_known<ValueHintRow>(std::move(key), Type::kText, std::move(sentence), [of](const ValueHintRow& r) {
    return r.of.numbers ? value_of(r.of.*of) : Value();
  });
}

template <typename Row, typename Get>
Field rows_of_hints(std::string sentence, Get get) {
  return rows<Row>("values", std::move(sentence), value_hints(), [get](const Row& r, const UseRow& use) {
    for (const analysis::ValueHint& of : get(r)) {
      const ValueHintRow hint{r.in, of};
      use(&hint);
    }
  });
}

Field faults_of_cause(std::string key, std::string sentence, double analysis::Cause::*of) {
  return field_if_known<CauseRow>(std::move(key), Type::kNumber, std::move(sentence), [of](const CauseRow& r) {
    return r.of.faults != 0 || r.of.usual_faults != 0 ? value_of(r.of.*of) : Value();
  });
}

}  // namespace

Explained::Explained(const words::ExplainedCall& of) : call(of), times(of.about().trace, of.about().start) {
  const analysis::FunctionList& list = call.functions();
  functions_.resize(list.functions().size());
  for (std::uint32_t process = 0; process < trace().processes().size(); ++process)
    for (std::uint32_t id = 1; id <= trace().processes()[process].last_id; ++id)
      if (list.has(process, id)) functions_[list.of(process, id)] = {process, id};
}

CauseRow::CauseRow(const Explained& explained, std::size_t cause)
    : in(explained), number(cause), of(in.call.explanation().causes[cause]), told(in.call.wait(of)) {}

const Relation& value_hints() {
  using Row = ValueHintRow;
  using Hint = analysis::ValueHint;
  static const Relation relation{
      "value_hints",
      "value_hint",
      "A row for each noted value that no typical call has",
      {field<Row>("function", Type::kFunction, "of whose call it is",
                  [](const Row& r) { return r.in.function(r.of.function); }),
       field<Row>("name", Type::kText, "of the argument; `returned`: what the call returned",
                  [](const Row& r) -> const std::string& { return r.of.name; }),
       field<Row>("here", Type::kText, "what it is; of several calls that of the longest",
                  [](const Row& r) -> const std::string& { return r.of.here; }),
       field<Row>("calls", Type::kCount, "how many calls these are", [](const Row& r) { return r.of.calls; }),
       field<Row>("typical", Type::kCount, "values in typical calls", [](const Row& r) { return r.of.typical; }),
       field<Row>("commonest", Type::kText, "of these",
                  [](const Row& r) -> const std::string& { return r.of.commonest; }),
       field<Row>("times", Type::kCount, "that they are this one", [](const Row& r) { return r.of.times; }),
       of_numbers("least", "the least of them, of numbers", &Hint::least),
       of_numbers("median", "their median", &Hint::mid), of_numbers("most", "the greatest of them", &Hint::most),
       field<Row>("words", Type::kText, "all that in words", [](const Row& r) { return r.in.call.words(r.of); })}};
  return relation;
}

const Relation& causes() {
  using Row = CauseRow;
  static const Relation relation{
      "causes", "cause", "A row for each difference between the call and typical ones, by its share of the excess",
      joined(
          {{field<Row>("kind", Type::kText,
                       "own time, computing, blocked, without a CPU, not known, more calls, fewer calls, new, missing",
                       [](const Row& r) { return words::kind_name(r.of.kind); }),
            rows<Row>("path", "from the call's callee down; nothing: the call itself", path_calls(),
                      [](const Row& r, const UseRow& use) {
                        for (const std::uint32_t number : r.of.path) {
                          const FunctionRef row = r.in.function(number);
                          use(&row);
                        }
                      }),
            field<Row>("excess", Type::kDuration, "how much of the excess it is; below 0: the call was faster there",
                       [](const Row& r) { return r.in.call.ns(r.of.ticks); }),
            field<Row>("share", Type::kShare, "the same as a part of the excess",
                       [](const Row& r) { return r.in.call.share(r.of.ticks); }),
            field<Row>("calls", Type::kCount, "of the path, in the call", [](const Row& r) { return r.of.calls; }),
            field<Row>("usual_calls", Type::kNumber, "in a typical call",
                       [](const Row& r) { return r.of.usual_calls; }),
            faults_of_cause("page_faults", "page faults, where they are recorded", &analysis::Cause::faults),
            faults_of_cause("usual_page_faults", "in a typical call", &analysis::Cause::usual_faults)},
           fields_of<Row>(wait_fields(), [](const Row& r) { return r.wait(); }),
           {rows<Row>("chain", "who was waited for", chain_links(),
                      [](const Row& r, const UseRow& use) {
                        for (const words::ToldLink& of : r.in.call.chain(r.number)) {
                          const LinkRow link{r.in.trace(), r.in.times, of};
                          use(&link);
                        }
                      }),
            rows_of_hints<Row>(
                "what calls on its path were given or returned that is not usual",
                [](const Row& r) -> const auto& { return r.of.values; }),
            field<Row>("place", Type::kText, "the path in words", [](const Row& r) { return r.in.call.place(r.of); }),
            field<Row>("what", Type::kText, "what was different there",
                       [](const Row& r) { return r.in.call.what(r.of); })}})};
  return relation;
}

const Relation& explanations() {
  using Row = ExplanationRow;
  static const auto of = [](const Row& r) -> const analysis::Explanation& { return r.in.call.explanation(); };
  static const Relation relation{
      "explanations",
      "explanation",
      "A row for each call that was asked about: why it took longer than others of its function",
      {field<Row>("call", Type::kText, "its thread and begin, as --call takes them",
                  [](const Row& r) { return r.in.call.id(); }),
       field<Row>("function", Type::kFunction, "what was called",
                  [](const Row& r) {
                    return FunctionRef{r.in.call.about().call.thread->process, r.in.call.about().function};
                  }),
       field<Row>("process", Type::kProcess, "of its thread",
                  [](const Row& r) { return ProcessRef{r.in.call.about().call.thread->process}; }),
       field<Row>("thread", Type::kThread, "that it was made in",
                  [](const Row& r) { return ThreadRef{r.in.call.about().call.thread}; }),
       field<Row>("begin", Type::kTime, "after the trace's first event",
                  [](const Row& r) { return r.in.times.since_start(r.in.call.about().call.begin); }),
       field<Row>("duration", Type::kDuration, "how long it took",
                  [](const Row& r) { return r.in.times.ns(of(r).duration); }),
       field_if_known<Row>("most", Type::kDuration,
                           "of a call that was left by a tail call into code that is not traced: the longest that it "
                           "can have lasted",
                           [](const Row& r) { return of(r).most == 0 ? Value() : Value(r.in.times.ns(of(r).most)); }),
       field<Row>("siblings", Type::kCount, "other complete calls of its function",
                  [](const Row& r) { return of(r).siblings; }),
       field<Row>("typical", Type::kCount, "those of them that it is compared with",
                  [](const Row& r) { return of(r).typical; }),
       field<Row>("usual", Type::kDuration, "the median of the siblings",
                  [](const Row& r) { return r.in.times.ns(of(r).usual); }),
       field<Row>("first", Type::kFlag, "whether it is the first of them", [](const Row& r) { return of(r).first; }),
       field<Row>("stands_out", Type::kFlag, "whether it took longer than siblings differ among each other",
                  [](const Row& r) { return of(r).stands_out; }),
       field<Row>("excess", Type::kDuration, "how much longer than usual it took",
                  [](const Row& r) { return r.in.call.ns(of(r).excess()); }),
       field_if_known<Row>(
           "comparison", Type::kText, "what it is compared with, in words",
           [](const Row& r) { return of(r).siblings != 0 ? value_of(r.in.call.comparison()) : Value(); }),
       rows_of_hints<Row>(
           "what it was given or returned that is not usual", [](const Row& r) -> const auto& { return of(r).values; }),
       rows<Row>("lock_waits", "its longest wait for a lock, if that is a tenth of it", lock_waits(),
                 [](const Row& r, const UseRow& use) {
                   if (r.lock != nullptr) use(r.lock);
                 }),
       rows<Row>("causes", "what was different, the greatest share first", causes(),
                 [](const Row& r, const UseRow& use) {
                   for (std::size_t i = 0; i < of(r).causes.size(); ++i) {
                     const CauseRow row(r.in, i);
                     use(&row);
                   }
                 }),
       field<Row>("rest", Type::kDuration, "the excess that no cause has",
                  [](const Row& r) { return r.in.call.ns(of(r).rest); }),
       field<Row>("rest_share", Type::kShare, "the same as a part of the excess",
                  [](const Row& r) { return r.in.call.share(of(r).rest); }),
       field<Row>("headline", Type::kText, "the answer in one sentence",
                  [](const Row& r) { return r.in.call.headline(); })}};
  return relation;
}

}  // namespace karst::answers
