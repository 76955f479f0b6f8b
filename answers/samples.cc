// SPDX-License-Identifier: MIT
#include "answers/samples.h"

#include "base/plain_name.h"
#include "base/text.h"

namespace karst::answers {
namespace {

std::string short_module(const SampledFunctionRow& r) {
  return printable(r.function.module.substr(r.function.module.rfind('/') + 1));
}

std::string short_below(const SampledFunctionRow& r) { return r.below.empty() ? "-" : printable(plain_name(r.below)); }

Field name_of_sampled() {
  return field<SampledFunctionRow>("function", Type::kText, "its name",
                                   [](const SampledFunctionRow& r) -> const std::string& { return r.function.name; },
                                   {.is_name = true});
}

}  // namespace

const Relation& sampled_below() {
  static const Relation relation{
      "sampled_below",
      "sampled_below",
      "A row for each traced function below whose calls a function was sampled",
      {field<SampledBelowRow>("samples", Type::kCount, "how many",
                              [](const SampledBelowRow& r) { return r.in.samples; }),
       field<SampledBelowRow>("time", Type::kDuration, "that they stand for",
                              [](const SampledBelowRow& r) { return r.times.ns(r.in.ticks); }),
       field<SampledBelowRow>("function", Type::kText, "of the innermost traced call; empty: in none",
                              [](const SampledBelowRow& r) -> const std::string& { return r.function; })}};
  return relation;
}

const Relation& sampled_functions() {
  using Row = SampledFunctionRow;
  using enum Look::Shown;
  static const Relation relation{
      "sampled_functions",
      "sampled_function",
      "A row for each function that samples saw, traced or not",
      {field<Row>("self_share", Type::kShare, "of the time of all samples",
                  [](const Row& r) { return share_of(r.of.self.ticks, r.all_ticks); },
                  {.title = "self%", .least_width = 6}),
       field<Row>("self", Type::kDuration, "time in the function itself: its samples times their period, or its waits",
                  [](const Row& r) { return r.times.ns(r.of.self.ticks); }, {.least_width = 10}),
       field<Row>("total", Type::kDuration, "the same with what it called; recursion counts once",
                  [](const Row& r) { return r.times.ns(r.of.total.ticks); }, {.least_width = 10}),
       field<Row>("samples", Type::kCount, "in the function itself", [](const Row& r) { return r.of.self.samples; },
                  {.rank = 3, .least_width = 8}),
       field<Row>("total_samples", Type::kCount, "with what it called", [](const Row& r) { return r.of.total.samples; },
                  {.shown = kAsked}),
       field<Row>("traced_samples", Type::kCount, "in it as the innermost traced call itself",
                  [](const Row& r) { return r.of.traced.samples; }, {.shown = kAsked}),
       field<Row>("module", Type::kText, "that its code is in",
                  [](const Row& r) -> const std::string& { return r.function.module; },
                  {.rank = 2, .least_width = 16, .words = words<Row>(short_module)}),
       field<Row>("file", Type::kText, "its source", [](const Row& r) -> const std::string& { return r.function.file; },
                  {.shown = kAsked}),
       field<Row>("line", Type::kNumber, "where it begins there", [](const Row& r) { return r.function.line; },
                  {.shown = kAsked}),
       field<Row>("below", Type::kText,
                  "the traced call in which most of its time was; '-': in none, and '=': the function is that one",
                  [](const Row& r) -> const std::string& { return r.below; },
                  {.rank = 1, .least_width = 20, .most_width = 30, .is_name = true, .words = words<Row>(short_below)}),
       rows<Row>("in_calls", "its own samples by the traced call that they were below", sampled_below(),
                 [](const Row& r, const UseRow& use) {
                   for (const auto& [name, in] : r.of.below) {
                     const SampledBelowRow row{name, in, r.times};
                     use(&row);
                   }
                 }),
       formerly("name", name_of_sampled()), name_of_sampled()}};
  return relation;
}

}  // namespace karst::answers
