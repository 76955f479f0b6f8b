// SPDX-License-Identifier: MIT
#include "answers/usage.h"

#include <utility>

namespace karst::answers {
namespace {

const format::KindOfUsage& kind_of(const reader::UsageSeries& series) { return analysis::kind_of_usage(series); }

std::string_view owner_of(const reader::UsageSeries& series) {
  return format::kUsageOfWords[static_cast<std::uint32_t>(series.of)];
}

/// 0 stands for none.
Value number_or_none(std::uint32_t number) { return number == 0 ? Value() : value_of(number); }

template <typename Row>
std::vector<Field> whose_usage(std::vector<Field> before, std::vector<Field> behind) {
  std::vector<Field> fields = std::move(before);
  fields.push_back(field<Row>("what", Type::kText, "what was used: cpu, memory and the like",
                              [](const Row& r) { return std::string_view(kind_of(r.series).words); }));
  fields.push_back(field<Row>("of", Type::kText, "machine, cgroup, process or thread",
                              [](const Row& r) { return owner_of(r.series); }));
  fields.push_back(field_if_known<Row>("pid", Type::kNumber, "of the process",
                                       [](const Row& r) { return number_or_none(r.series.pid); }));
  fields.push_back(field_if_known<Row>("tid", Type::kNumber, "of the thread",
                                       [](const Row& r) { return number_or_none(r.series.tid); }));
  for (Field& one : behind) fields.push_back(std::move(one));
  fields.push_back(field<Row>("unit", Type::kText, "of the value",
                              [](const Row& r) { return std::string_view(kind_of(r.series).of_unit().words); }));
  return fields;
}

}  // namespace

const Relation& usage() {
  using Row = UsageRow;
  static const Relation relation{
      "usage", "usage", "A row for each thing that was used, and who used it",
      whose_usage<Row>(
          {}, {field<Row>("mean", Type::kReal, "over the time", [](const Row& r) { return r.sum.mean; }),
               field<Row>("least", Type::kReal, "the lowest value", [](const Row& r) { return r.sum.least; }),
               field<Row>("most", Type::kReal, "the highest value", [](const Row& r) { return r.sum.most; }),
               field<Row>("readings", Type::kCount, "that are kept", [](const Row& r) { return r.sum.readings; }),
               field<Row>("thinned", Type::kFlag, "whether older readings were put together",
                          [](const Row& r) { return r.series.thinned; }),
               field_if_known<Row>("name", Type::kText, "of the thread",
                                   [](const Row& r) { return r.thread.empty() ? Value() : value_of(r.thread); })})};
  return relation;
}

const Relation& usage_values() {
  using Row = UsageValueRow;
  static const Relation relation{
      "usage_values", "usage_value", "A row for each value of what was used",
      whose_usage<Row>({field<Row>("time", Type::kTime, "from when on, after the trace's first event",
                                   [](const Row& r) { return r.times.since_start(r.at.ticks); })},
                       {field<Row>("value", Type::kReal, "until the next one; of what grows how much in a second",
                                   [](const Row& r) { return r.at.value; })})};
  return relation;
}

std::vector<UsageRow> usage_rows(const reader::Trace& trace) {
  const analysis::UsageOwners owners(trace);
  std::vector<UsageRow> rows;
  for (const reader::UsageSeries& series : trace.usage().series) {
    const reader::Thread* const thread = owners.thread(series);
    rows.push_back({series, thread != nullptr ? thread->name : std::string(),
                    analysis::usage_sum(series, analysis::usage_samples(series, trace.clock()))});
  }
  return rows;
}

}  // namespace karst::answers
