#include "engine/api/answers.h"

#include <vector>

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

}  // namespace

void write_state_times(Json& json, std::string_view name, const reader::Clock& clock, const reader::StateTimes& times) {
  const auto ns = [&](std::uint64_t ticks) {
    return static_cast<std::int64_t>(ticks) < 0 ? 0 : exact_ns(clock, ticks);
  };
  json.key(name).open('{').field("cpu", ns(times.running)).field("runnable", ns(times.runnable));
  json.field("blocked", ns(times.blocked)).field("unknown", ns(times.unknown)).close('}');
}

void write_table(Json& json, const reader::Clock& clock, const columns::Table& table) {
  json.field("threads", table.threads).field("calls", table.calls).field("open_calls", table.open_calls);
  json.field("busy", sum_ns(clock, table.self));
  if (table.has_states) write_state_times(json, "states", clock, table.states);
  json.key("rows").open('{');
  const auto& rows = table.functions;
  json.list("function", rows, [](const columns::FunctionRow& f) { return f.function; });
  json.list("calls", rows, [](const columns::FunctionRow& f) { return f.calls; });
  json.list("open_calls", rows, [](const columns::FunctionRow& f) { return f.open_calls; });
  json.list("total", rows, [&](const columns::FunctionRow& f) { return sum_ns(clock, f.total); });
  json.list("self", rows, [&](const columns::FunctionRow& f) { return sum_ns(clock, f.self); });
  const auto times = [&](const char* name, auto of) {
    json.key(name).open('[');
    for (const columns::FunctionRow& f : rows) {
      if (f.complete == 0) {
        json.null();
      } else {
        json.value(of(f));
      }
    }
    json.close(']');
  };
  times("min", [&](const columns::FunctionRow& f) { return clock.to_ns(f.min); });
  times("mean", [&](const columns::FunctionRow& f) { return sum_ns(clock, f.sum) / f.complete; });
  times("p50", [&](const columns::FunctionRow& f) { return clock.to_ns(f.of.p50); });
  times("p99", [&](const columns::FunctionRow& f) { return clock.to_ns(f.of.p99); });
  times("max", [&](const columns::FunctionRow& f) { return clock.to_ns(f.max); });
  if (table.has_states) {
    const auto states = [&](const char* name, reader::StateTimes columns::FunctionSums::*of,
                            std::uint64_t reader::StateTimes::*part) {
      json.list(name, rows, [&](const columns::FunctionRow& f) { return sum_ns(clock, f.*of.*part); });
    };
    states("cpu", &columns::FunctionSums::total_states, &reader::StateTimes::running);
    states("runnable", &columns::FunctionSums::total_states, &reader::StateTimes::runnable);
    states("blocked", &columns::FunctionSums::total_states, &reader::StateTimes::blocked);
    states("self_cpu", &columns::FunctionSums::self_states, &reader::StateTimes::running);
    states("self_runnable", &columns::FunctionSums::self_states, &reader::StateTimes::runnable);
    states("self_blocked", &columns::FunctionSums::self_states, &reader::StateTimes::blocked);
  }
  json.close('}');
}

void write_histogram(Json& json, const reader::Clock& clock, std::uint32_t function,
                     const columns::Histogram& histogram) {
  const std::uint64_t known = histogram.calls - histogram.open_calls;
  json.open('{').field("function", function).field("calls", histogram.calls);
  json.field("open_calls", histogram.open_calls);
  const auto time = [&](const char* name, std::uint64_t ticks) {
    json.key(name);
    if (known == 0) {
      json.null();
    } else {
      json.value(clock.to_ns(ticks));
    }
  };
  time("min", histogram.min);
  time("p50", histogram.of.p50);
  time("p99", histogram.of.p99);
  time("max", histogram.max);
  json.key("mean");
  if (known == 0) {
    json.null();
  } else {
    json.value(sum_ns(clock, histogram.sum) / known);
  }
  json.list("edges", histogram.edges, [&](std::uint64_t ticks) { return exact_ns(clock, ticks); });
  json.list("counts", histogram.counts, [](std::uint64_t count) { return count; }).close('}');
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
