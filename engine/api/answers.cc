// SPDX-License-Identifier: MIT
#include "engine/api/answers.h"

#include <vector>

#include "engine/api/rows.h"

namespace karst::engine {
namespace {

// ns of a sum of ticks, which clocks that stray, or the tracer's cost, may have made less than nothing.
std::uint64_t sum_ns(const reader::Clock& clock, std::uint64_t ticks) {
  return static_cast<std::int64_t>(ticks) < 0 ? 0 : clock.to_ns(ticks);
}

// With its fraction.
double exact_ns(const reader::Clock& clock, std::uint64_t ticks) {
  return static_cast<double>(ticks) * 1e9 / static_cast<double>(clock.ticks_per_second);
}

using answers::Field;
using answers::field;
using answers::field_if_known;
using answers::list;
using answers::Relation;
using answers::Type;
using answers::Value;
using answers::value_of;
using reader::StateTimes;

struct TableAnswer {
  const TraceIndex& index;
  const columns::Table& of;

  const reader::Clock& clock() const { return index.trace().clock(); }
};

struct FunctionAnswer {
  const TableAnswer& in;
  const columns::FunctionRow& of;

  std::uint64_t ns(std::uint64_t ticks) const { return sum_ns(in.clock(), ticks); }
};

/// Where some of its calls are complete.
template <typename Get>
Field of_complete(std::string key, std::string sentence, Get get) {
  return field_if_known<FunctionAnswer>(
      std::move(key), Type::kDuration, std::move(sentence),
      [get](const FunctionAnswer& r) { return r.of.complete == 0 ? Value() : value_of(get(r)); });
}

Field of_states(std::string key, std::string sentence, StateTimes columns::FunctionSums::*of,
                std::uint64_t StateTimes::*part) {
  return field_if_known<FunctionAnswer>(
      std::move(key), Type::kDuration, std::move(sentence),
      [of, part](const FunctionAnswer& r) { return r.in.of.has_states ? value_of(r.ns(r.of.*of.*part)) : Value(); });
}

const Relation& function_rows() {
  using Row = FunctionAnswer;
  using columns::FunctionSums;
  static const Relation relation{
      "function_rows",
      "function_row",
      "A row for each function that was called",
      {field<Row>("function", Type::kNumber, "in TraceInfo.functions", [](const Row& r) { return r.of.function; }),
       field<Row>("calls", Type::kCount, "how many", [](const Row& r) { return r.of.calls; }),
       field<Row>("open_calls", Type::kCount, "of them those with a begin or an end that is not known",
                  [](const Row& r) { return r.of.open_calls; }),
       field<Row>("total", Type::kDuration, "time with the function on the stack",
                  [](const Row& r) { return r.ns(r.of.total); }),
       field<Row>("self", Type::kDuration, "time in the function itself", [](const Row& r) { return r.ns(r.of.self); }),
       of_complete("min", "the shortest of the complete calls",
                   [](const Row& r) { return r.in.clock().to_ns(r.of.min); }),
       of_complete("mean", "of the complete calls", [](const Row& r) { return r.ns(r.of.sum) / r.of.complete; }),
       of_complete("p50", "half of them took no longer", [](const Row& r) { return r.in.clock().to_ns(r.of.of.p50); }),
       of_complete("p99", "99 of 100 took no longer", [](const Row& r) { return r.in.clock().to_ns(r.of.of.p99); }),
       of_complete("max", "the longest of them", [](const Row& r) { return r.in.clock().to_ns(r.of.max); }),
       of_states("cpu", "part of the total on a CPU", &FunctionSums::total_states, &StateTimes::running),
       of_states("runnable", "part of the total without a CPU", &FunctionSums::total_states, &StateTimes::runnable),
       of_states("blocked", "part of the total in which threads waited", &FunctionSums::total_states,
                 &StateTimes::blocked),
       of_states("self_cpu", "part of the own time on a CPU", &FunctionSums::self_states, &StateTimes::running),
       of_states("self_runnable", "part of the own time without a CPU", &FunctionSums::self_states,
                 &StateTimes::runnable),
       of_states("self_blocked", "part of the own time in which threads waited", &FunctionSums::self_states,
                 &StateTimes::blocked)}};
  return relation;
}

struct TimesAnswer {
  const reader::Clock& clock;
  const StateTimes& of;
};

Field part_of_times(std::string key, std::string sentence, std::uint64_t StateTimes::*of) {
  return field<TimesAnswer>(std::move(key), Type::kDuration, std::move(sentence), [of](const TimesAnswer& r) {
    const std::uint64_t ticks = r.of.*of;
    return static_cast<std::int64_t>(ticks) < 0 ? 0 : exact_ns(r.clock, ticks);
  });
}

struct HistogramAnswer {
  const TraceIndex& index;
  std::uint32_t function;
  const columns::Histogram& of;

  const reader::Clock& clock() const { return index.trace().clock(); }
  std::uint64_t known() const { return of.calls - of.open_calls; }
};

/// Where some calls are complete.
template <typename Get>
Field of_known(std::string key, std::string sentence, Get get) {
  return field_if_known<HistogramAnswer>(
      std::move(key), Type::kDuration, std::move(sentence),
      [get](const HistogramAnswer& r) { return r.known() == 0 ? Value() : value_of(get(r)); });
}

}  // namespace

const Relation& state_times() {
  static const Relation relation{"state_times",
                                 "state_times",
                                 "What threads did in a time",
                                 {part_of_times("cpu", "they ran", &StateTimes::running),
                                  part_of_times("runnable", "they had no CPU", &StateTimes::runnable),
                                  part_of_times("blocked", "they waited", &StateTimes::blocked),
                                  part_of_times("unknown", "it is not known", &StateTimes::unknown)}};
  return relation;
}

void each_state_times(const TraceIndex& index, const StateTimes& times, const answers::UseRow& use) {
  const TimesAnswer answer{index.trace().clock(), times};
  use(&answer);
}

const Relation& function_tables() {
  using Row = TableAnswer;
  static const Relation relation{
      "function_tables",
      "function_table",
      "Sums by function",
      {field<Row>("threads", Type::kCount, "that called", [](const Row& r) { return r.of.threads; }),
       field<Row>("calls", Type::kCount, "how many there are", [](const Row& r) { return r.of.calls; }),
       field<Row>("open_calls", Type::kCount, "of them those with a begin or an end that is not known",
                  [](const Row& r) { return r.of.open_calls; }),
       field<Row>("busy", Type::kDuration, "of all threads together",
                  [](const Row& r) { return sum_ns(r.clock(), r.of.self); }),
       answers::row<Row>("states", "of `busy`; null: the trace has no thread states", state_times(),
                         [](const Row& r, const answers::UseRow& use) {
                           const TimesAnswer times{r.clock(), r.of.states};
                           if (r.of.has_states) use(&times);
                         }),
       answers::rows<Row>("rows", "by function", function_rows(), [](const Row& r, const answers::UseRow& use) {
         for (const columns::FunctionRow& of : r.of.functions) {
           const FunctionAnswer row{r, of};
           use(&row);
         }
       })}};
  return relation;
}

void write_table(Json& json, const TraceIndex& index, const columns::Table& table) {
  const TableAnswer answer{index, table};
  write_row(json, index, function_tables(), &answer);
}

const Relation& histograms() {
  using Row = HistogramAnswer;
  static const Relation relation{
      "histograms",
      "histogram",
      "How durations spread",
      {field<Row>("function", Type::kNumber, "whose calls they are of", [](const Row& r) { return r.function; }),
       field<Row>("calls", Type::kCount, "how many", [](const Row& r) { return r.of.calls; }),
       field<Row>("open_calls", Type::kCount, "of them those with a begin or an end that is not known",
                  [](const Row& r) { return r.of.open_calls; }),
       of_known("min", "the shortest of the complete calls", [](const Row& r) { return r.clock().to_ns(r.of.min); }),
       of_known("p50", "half of them took no longer", [](const Row& r) { return r.clock().to_ns(r.of.of.p50); }),
       of_known("p99", "99 of 100 took no longer", [](const Row& r) { return r.clock().to_ns(r.of.of.p99); }),
       of_known("max", "the longest of them", [](const Row& r) { return r.clock().to_ns(r.of.max); }),
       of_known("mean", "of the complete calls", [](const Row& r) { return sum_ns(r.clock(), r.of.sum) / r.known(); }),
       list<Row>("edges", Type::kDuration, "between which they are counted: one more than counts",
                 [](const Row& r, const auto& use) {
                   for (const std::uint64_t ticks : r.of.edges) use(exact_ns(r.clock(), ticks));
                 }),
       list<Row>("counts", Type::kCount, "complete calls between them", [](const Row& r, const auto& use) {
         for (const std::uint64_t count : r.of.counts) use(count);
       })}};
  return relation;
}

void write_histogram(Json& json, const TraceIndex& index, std::uint32_t function, const columns::Histogram& histogram) {
  const HistogramAnswer answer{index, function, histogram};
  json.open('{');
  write_row(json, index, histograms(), &answer);
  json.close('}');
}

void each_histogram(const TraceIndex& index, const columns::Histogram& histogram, const answers::UseRow& use) {
  const HistogramAnswer answer{index, 0, histogram};
  use(&answer);
}

void write_flame(Json& json, const columns::FlameTree& tree, std::uint32_t root, double share,
                 const reader::Clock& clock, const reader::Clock* clock_b) {
  using Node = columns::FlameView::Node;
  const columns::FlameView view = columns::prune(tree, root, share);
  const columns::FlameNode& top = tree.nodes()[root];
  json.field("total", sum_ns(clock, top.side[0].total)).field("calls", top.side[0].calls);
  if (clock_b != nullptr)
    json.field("total_b", sum_ns(*clock_b, top.side[1].total)).field("calls_b", top.side[1].calls);
  json.field("truncated", tree.truncated()).key("nodes").open('{');
  const auto& nodes = view.nodes;
  json.list("parent", nodes, [](const Node& n) { return n.parent; });
  json.list("function", nodes, [](const Node& n) { return n.function; });
  json.list("total", nodes, [&](const Node& n) { return sum_ns(clock, n.side[0].total); });
  json.list("self", nodes, [&](const Node& n) { return sum_ns(clock, n.side[0].self); });
  json.list("calls", nodes, [](const Node& n) { return n.side[0].calls; });
  json.list("merged", nodes, [](const Node& n) { return n.merged; });
  if (clock_b != nullptr) {
    json.list("total_b", nodes, [&](const Node& n) { return sum_ns(*clock_b, n.side[1].total); });
    json.list("self_b", nodes, [&](const Node& n) { return sum_ns(*clock_b, n.side[1].self); });
    json.list("calls_b", nodes, [](const Node& n) { return n.side[1].calls; });
  }
  json.close('}');
}

}  // namespace karst::engine
