// SPDX-License-Identifier: MIT
#include "answers/programs.h"

#include <fmt/format.h>

#include "answers/module_mark.h"
#include "base/text.h"

namespace karst::answers {
namespace {

using enum Look::Shown;

Field function_called_so(std::string sentence) {
  return field<PlaceRow>("function", Type::kText, std::move(sentence),
                         [](const PlaceRow& r) -> const std::string& { return r.name; }, {.is_name = true});
}

Field address_of_place() {
  const auto words_of = [](const PlaceRow& r) { return fmt::format("{:#x}", r.address); };
  return field<PlaceRow>("address", Type::kNumber, "where it begins in the file",
                         [](const PlaceRow& r) { return r.address; },
                         {.rank = 2, .least_width = 10, .words = words<PlaceRow>(words_of)});
}

Field is_patched() {
  return field<PlaceRow>("patched", Type::kFlag, "whether it can be traced",
                         [](const PlaceRow& r) { return !r.left_alone; }, {.shown = kAsked});
}

Field why_left_alone() {
  return field_if_known<PlaceRow>("reason", Type::kText, "why it cannot",
                                  [](const PlaceRow& r) { return r.left_alone; },
                                  {.title = "why it is left alone", .least_width = 40});
}

std::string behind_counted(const CountedFunctionRow& r) {
  std::string more = "  " + module_mark(r.module);
  return r.file.empty() ? more : more + fmt::format("  {}:{}", printable(r.file), r.line);
}

std::string words_of_share(const CountedFunctionRow& r) {
  return fmt::format("{:.2f}%", 100 * share_of(r.calls, r.all_calls));
}

Field name_of_counted() {
  return field<CountedFunctionRow>("function", Type::kText, "its name",
                                   [](const CountedFunctionRow& r) -> const std::string& { return r.name; },
                                   {.is_name = true});
}

}  // namespace

const Relation& counted_functions() {
  using Row = CountedFunctionRow;
  static const Relation relation = [] {
    Relation made{
        "counted_functions",
        "counted_function",
        "A row for each function that was called",
        {field<Row>("calls", Type::kCount, "how often that was", [](const Row& r) { return r.calls; },
                    {.least_width = 15}),
         field<Row>("share", Type::kShare, "of all calls", [](const Row& r) { return share_of(r.calls, r.all_calls); },
                    {.rank = 1, .least_width = 7, .words = words<Row>(words_of_share)}),
         field<Row>("module", Type::kText, "its file", [](const Row& r) -> const std::string& { return r.module; },
                    {.shown = kAsked}),
         field<Row>("file", Type::kText, "its source", [](const Row& r) -> const std::string& { return r.file; },
                    {.shown = kAsked}),
         field<Row>("line", Type::kNumber, "where it begins there", [](const Row& r) { return r.line; },
                    {.shown = kAsked}),
         formerly("name", name_of_counted()), name_of_counted()}};
    made.behind = words<Row>(behind_counted);
    made.listed_as = "functions";
    return made;
  }();
  return relation;
}

const Relation& patchable_functions() {
  using Row = PlaceRow;
  static const Relation relation{
      "patchable_functions",
      "patchable_function",
      "A row for each function of a program",
      {address_of_place(),
       field<Row>("size", Type::kBytes, "of its code", [](const Row& r) { return r.size; },
                  {.title = "bytes", .rank = 1, .least_width = 6, .words = words<Row>([](const Row& r) {
                                                                    return std::to_string(r.size);
                                                                  })}),
       is_patched(), why_left_alone(), function_called_so("its name")},
      nullptr,
      {},
      "functions"};
  return relation;
}

const Relation& probes() {
  using Row = PlaceRow;
  static const Relation relation{
      "probes",
      "probe",
      "A row for each probe of a program",
      {address_of_place(), is_patched(), why_left_alone(),
       field<Row>("values", Type::kText, "that it has", [](const Row& r) -> const std::string& { return r.values; },
                  {.rank = 1, .least_width = 40}),
       field<Row>("name", Type::kText, "its provider and its name",
                  [](const Row& r) -> const std::string& { return r.name; }, {.title = "probe", .is_name = true})}};
  return relation;
}

const Relation& handled_functions() {
  using Row = HandledFunctionRow;
  static const Relation relation{
      "handled_functions",
      "handled_function",
      "A row for each function that has handlers",
      {field<Row>("calls", Type::kCount, "for which these were called", [](const Row& r) { return r.calls; },
                  {.least_width = 10}),
       field<Row>("level", Type::kNumber, "how much they are to do", [](const Row& r) { return r.level; },
                  {.least_width = 6}),
       field<Row>("function", Type::kText, "its name", [](const Row& r) -> const std::string& { return r.name; },
                  {.is_name = true})},
      nullptr,
      {},
      "functions"};
  return relation;
}

}  // namespace karst::answers
