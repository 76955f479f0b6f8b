// SPDX-License-Identifier: MIT
#include "answers/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace karst::answers {
namespace {

Field trace_field(const std::function<const std::string&(const void*)>& of) {
  return {.key = "trace",
          .name = "trace",
          .type = Type::kText,
          .sentence = "the file",
          .put = [of](const void* row, Sink& sink) { sink.text(of(row)); },
          .look = {.shown = Look::Shown::kWide}};
}

}  // namespace

std::string amount_text(std::uint64_t amount, const std::string& unit) {
  if (unit == "ns") return duration_text(amount);
  if (unit == "bytes") return size_text(amount);
  return count_text(amount) + (unit.empty() ? "" : " " + printable(unit));
}

const Relation& check_findings() {
  using Row = CheckFinding;
  const auto known = [](const std::string& text) {
    return text.empty() ? std::optional<std::string_view>() : std::optional<std::string_view>(text);
  };
  static const Relation relation{
      "check_findings",
      "check_finding",
      "A row for each thing that a detector found",
      {trace_field([](const void* row) -> const std::string& { return static_cast<const Row*>(row)->trace; }),
       field<Row>("detector", Type::kText, "which detector found it",
                  [](const Row& r) -> const std::string& { return r.detector; }),
       field<Row>("begin", Type::kTime, "when it began, or its worst case, after the trace's first event",
                  [](const Row& r) { return r.begin_ns; }),
       field<Row>("duration", Type::kDuration, "how long that lasted", [](const Row& r) { return r.duration_ns; }),
       field_if_known<Row>("tid", Type::kNumber, "the thread it was in", [](const Row& r) { return r.tid; }),
       field_if_known<Row>("thread", Type::kText, "its name", [known](const Row& r) { return known(r.thread); },
                           {.shown = Look::Shown::kWide}),
       field_if_known<Row>("call", Type::kText, "the call to look at first, as karst explain --call takes it",
                           [known](const Row& r) { return known(r.call); }),
       field<Row>("amount", Type::kNumber, "how much of it there is, in its unit",
                  [](const Row& r) { return r.amount; },
                  {.words = words<Row>([](const Row& r) { return amount_text(r.amount, r.unit); })}),
       field<Row>("unit", Type::kText, "ns, bytes, or what is counted",
                  [](const Row& r) -> const std::string& { return r.unit; }, {.shown = Look::Shown::kAsked}),
       field<Row>("total", Type::kDuration, "time that it takes in all, of all threads together",
                  [](const Row& r) { return r.total_ns; }),
       field<Row>("sure", Type::kShare, "how likely it is more than chance, as the detector reckons",
                  [](const Row& r) { return r.sure; }),
       field<Row>("sentence", Type::kText, "what it is, with its numbers",
                  [](const Row& r) -> const std::string& { return r.sentence; }, {.shown = Look::Shown::kAsked}),
       field<Row>("title", Type::kText, "what it is, in short",
                  [](const Row& r) -> const std::string& { return r.title; })}};
  return relation;
}

const Relation& check_outcomes() {
  using Row = CheckOutcome;
  static const Relation relation{
      "check_outcomes",
      "outcome",
      "A row for each detector and trace",
      {trace_field([](const void* row) -> const std::string& { return static_cast<const Row*>(row)->trace; }),
       field<Row>("detector", Type::kText, "its name", [](const Row& r) -> const std::string& { return r.detector; }),
       field<Row>("outcome", Type::kText, "found, nothing, not looked for, or failed",
                  [](const Row& r) { return r.outcome; }),
       field<Row>("findings", Type::kCount, "how many it found", [](const Row& r) { return r.findings; }),
       field<Row>("why", Type::kText, "it was not looked for, or failed; else empty",
                  [](const Row& r) -> const std::string& { return r.why; })}};
  return relation;
}

const Relation& detectors() {
  using Row = DetectorRow;
  static const Relation relation{
      "detectors",
      "detector",
      "A row for each detector",
      {field<Row>("detector", Type::kText, "its name", [](const Row& r) -> const std::string& { return r.name; }),
       field<Row>("needs", Type::kText, "what a trace must have for it",
                  [](const Row& r) { return fmt::format("{}", fmt::join(r.needs, ", ")); }),
       field<Row>("file", Type::kText, "where it is", [](const Row& r) -> const std::string& { return r.file; },
                  {.shown = Look::Shown::kAsked}),
       field<Row>("sentence", Type::kText, "what it looks for",
                  [](const Row& r) -> const std::string& { return r.sentence; })}};
  return relation;
}

}  // namespace karst::answers
