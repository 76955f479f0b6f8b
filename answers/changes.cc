// SPDX-License-Identifier: MIT
#include "answers/changes.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "base/text.h"
#include "words/findings.h"

namespace karst::answers {
namespace {

using analysis::DiffSide;
using analysis::Finding;
using analysis::FunctionDiff;
using Shown = Look::Shown;

constexpr const char* kSides[] = {"a", "b"};
constexpr const char* kTitles[] = {" A", " B"};

std::string change_words(const FunctionDiff& diff) {
  if (diff.side[0].calls == 0) return "new";
  if (diff.side[1].calls == 0) return "gone";
  if (!(diff.side[0].middle_ns > 0) || !(diff.side[1].middle_ns > 0)) return "-";
  return fmt::format("{:+.1f}%", diff.change() * 100);
}

/// A sum of all runs of a side; people see what is of one, and nothing where the side does not have the function.
Field sum_of_side(int at, const std::string& what, Type type, std::string sentence, std::uint64_t DiffSide::*of,
                  Look look) {
  look.title = what + kTitles[at];
  look.words = words<FunctionDiff>([=](const FunctionDiff& r) {
    const DiffSide& side = r.side[at];
    if (type == Type::kCount) return count_text(side.*of / r.runs[at]);
    return side.calls == 0 ? std::string("-") : duration_text(side.*of / r.runs[at]);
  });
  return field<FunctionDiff>(
      what + "_" + kSides[at], type, std::move(sentence), [=](const FunctionDiff& r) { return r.side[at].*of; },
      std::move(look));
}

Field of_complete_calls(int at, const std::string& what, std::string sentence, Look look,
                        Value (*get)(const DiffSide& side)) {
  look.title = what + kTitles[at];
  return field_if_known<FunctionDiff>(
      what + "_" + kSides[at], Type::kDuration, std::move(sentence),
      [=](const FunctionDiff& r) { return r.side[at].complete == 0 ? Value() : get(r.side[at]); }, std::move(look));
}

std::vector<Field> median_fields() {
  std::vector<Field> fields;
  for (const int at : {0, 1})
    fields.push_back(of_complete_calls(at, "p50", "the median of its complete calls", {.least_width = 10},
                                       [](const DiffSide& side) { return value_of(side.p50_ns); }));
  return fields;
}

std::vector<Field> fields_of_sums(const std::string& what, Type type, const std::string& sentence,
                                  std::uint64_t DiffSide::*of, const Look& look) {
  return {sum_of_side(0, what, type, sentence, of, look), sum_of_side(1, what, type, sentence, of, look)};
}

template <typename Get>
std::vector<Field> of_both_sides(const std::string& what, Type type, const std::string& sentence, Get get) {
  std::vector<Field> fields;
  for (const int at : {0, 1})
    fields.push_back(
        field<Finding>(what + "_" + kSides[at], type, sentence, [=](const Finding& r) { return get(r)[at]; }));
  return fields;
}

}  // namespace

const Relation& compared_functions() {
  using Row = FunctionDiff;
  static const Relation relation{
      "compared_functions", "compared_function", "A row for each function that is in A or in B",
      joined({{field_if_known<Row>("change", Type::kShare,
                                   "of the mean of the middle half of its calls' durations, from A to B; new, gone",
                                   [](const Row& r) { return r.tested ? value_of(r.change()) : Value(); },
                                   {.least_width = 8, .words = words<Row>(change_words)})},
              median_fields(),
              fields_of_sums("self", Type::kDuration, "time in it without the traced functions that it called",
                             &DiffSide::self_ns, {.rank = 2, .least_width = 10}),
              fields_of_sums("total", Type::kDuration, "time with it on the stack", &DiffSide::total_ns,
                             {.rank = 4, .shown = Shown::kWide, .least_width = 10}),
              fields_of_sums("calls", Type::kCount, "how many; of several runs people see the mean, programs the sum",
                             &DiffSide::calls, {.rank = 3, .least_width = 11}),
              fields_of_sums("complete", Type::kCount, "those of them whose begin and end are known",
                             &DiffSide::complete, {.shown = Shown::kAsked}),
              fields_of_sums("total_cost", Type::kDuration, "what tracing took, which total is without",
                             &DiffSide::total_cost_ns, {.shown = Shown::kAsked}),
              {of_complete_calls(0, "middle", "the mean that is compared", {.shown = Shown::kAsked},
                                 [](const DiffSide& side) { return value_of(side.middle_ns); }),
               of_complete_calls(1, "middle", "the mean that is compared", {.shown = Shown::kAsked},
                                 [](const DiffSide& side) { return value_of(side.middle_ns); }),
               field_if_known<Row>("chance", Type::kNumber, "probability that both sides are alike, adjusted",
                                   [](const Row& r) { return r.tested ? value_of(r.chance) : Value(); },
                                   {.shown = Shown::kAsked}),
               field<Row>("changed", Type::kFlag, "whether it is certain that its calls take longer or shorter",
                          [](const Row& r) { return r.changed; }, {.shown = Shown::kAsked}),
               field<Row>("self_changed", Type::kFlag, "the same of the self time of a call",
                          [](const Row& r) { return r.self_changed; }, {.shown = Shown::kAsked}),
               field<Row>("counts", Type::kText,
                          "whether there are more or fewer calls: same, exact, or why that may be chance",
                          [](const Row& r) { return analysis::word_of(r.counts); }, {.shown = Shown::kAsked}),
               field<Row>("module", Type::kText, "the file that it is in",
                          [](const Row& r) -> const std::string& { return r.module; }, {.shown = Shown::kAsked}),
               field<Row>("function", Type::kText, "its name",
                          [](const Row& r) -> const std::string& { return r.name; }, {.is_name = true})}})};
  return relation;
}

const Relation& findings() {
  using Row = Finding;
  static const Relation relation{
      "findings", "finding", "A row for each thing that explains a difference between A and B, what is certain first",
      joined({{field<Row>("kind", Type::kText, "count: of calls; time: of a call",
                          [](const Row& r) { return r.kind == Row::Kind::kCount ? "count" : "time"; }),
               field<Row>("caller", Type::kText, "of a count: the function that called; nothing: no traced one",
                          [](const Row& r) -> const std::string& { return r.caller; }),
               field<Row>("function", Type::kText, "that was called",
                          [](const Row& r) -> const std::string& { return r.function; }),
               field<Row>("certain", Type::kFlag, "whether it is", [](const Row& r) { return r.certain; }),
               field<Row>("sure", Type::kText, "how sure it is", [](const Row& r) { return words::sureness(r); })},
              of_both_sides("calls", Type::kNumber, "of a run: by the caller; of a time, all",
                            [](const Row& r) { return r.calls; }),
              of_both_sides("call_self", Type::kDuration, "of a time: self time of a call",
                            [](const Row& r) { return r.call_self_ns; }),
              {field<Row>("more", Type::kDuration, "what a run of B takes more for it",
                          [](const Row& r) { return std::int64_t(std::llround(r.more_ns)); }),
               field<Row>("words", Type::kText, "all that in a sentence",
                          [](const Row& r) { return words::words_of(r); })}})};
  return relation;
}

}  // namespace karst::answers
