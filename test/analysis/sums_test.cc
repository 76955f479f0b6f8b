// All answers that add calls up agree with each other and with a second, naive sum, on random traces and filters.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/report.h"
#include "query/edges.h"
#include "query/flame.h"
#include "query/table.h"
#include "reader/trace.h"
#include "write/synthetic.h"
#include "write/trace_writer.h"

namespace karst::analysis {
namespace {

/// What is known of a function, a path or a caller with its callee: calls, total, self in ticks.
using Sums = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

struct Naive {
  std::map<std::string, Sums> functions, paths, edges;
  std::map<std::string, std::vector<std::uint64_t>> durations;

  // A call's stack is walked up anew for each call: slow, and nothing to be wrong with.
  void add(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls) {
    const reader::Process& process = trace.processes()[thread.process];
    const auto name = [&](std::uint32_t row) {
      return row == reader::kNoParent ? std::string("-")
                                      : std::string(trace.function(process, calls.function[row]).name);
    };
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      const std::uint64_t duration = calls.duration[row];
      std::uint64_t self = duration;
      for (std::uint32_t child = row + 1; child < calls.size() && calls.begin[child] <= calls.begin[row] + duration;
           ++child)
        if (calls.parent[child] == row) self -= calls.duration[child];
      std::string path = name(row);
      bool function_above = false, edge_above = false;
      const std::string edge = name(calls.parent[row]) + ">" + name(row);
      for (std::uint32_t above = calls.parent[row]; above != reader::kNoParent; above = calls.parent[above]) {
        path = name(above) + ";" + path;
        function_above = function_above || name(above) == name(row);
        edge_above = edge_above || name(calls.parent[above]) + ">" + name(above) == edge;
      }
      const auto put = [&](Sums& to, bool counts_time) {
        ++std::get<0>(to);
        if (counts_time) std::get<1>(to) += duration;
        std::get<2>(to) += self;
      };
      put(functions[name(row)], !function_above);
      put(edges[edge], !edge_above);
      put(paths[path], true);
      durations[name(row)].push_back(duration);
    }
  }
};

struct Answers {
  std::map<std::string, Sums> functions, paths, edges;
};

void compare(const writing::SyntheticTrace& wanted, const CallFilter& filter) {
  std::vector<std::byte> bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writing::add_synthetic(writer, wanted);
  ASSERT_TRUE(writer.finish());
  auto trace = reader::Trace::open_memory(bytes, "random.karst");
  ASSERT_TRUE(trace);

  Naive naive;
  ReportBuilder builder(*trace);
  query::EdgeSums edges;
  query::FlameTree tree;
  for (const reader::Process& process : trace->processes()) {
    for (const reader::Thread& thread : process.threads) {
      reader::Calls calls = reader::rebuild_calls(*trace, thread);
      filter_calls(calls, thread.process, filter);
      naive.add(*trace, thread, calls);
      builder.add(thread, calls);
      edges.add(builder.parts().latest());
      tree.add(builder.parts().latest(), query::kNoFunction);
    }
  }
  const Report report = builder.finish();
  const auto& list = builder.parts().functions().functions();
  const Clock& clock = trace->clock();

  Answers answers;
  for (const FunctionReport& f : report.functions) {
    const auto [calls, total, self] = naive.functions[f.name];
    EXPECT_EQ(std::tuple(f.calls, f.total_ns, f.self_ns), std::tuple(calls, clock.to_ns(total), clock.to_ns(self)));
    std::vector<std::uint64_t> durations = builder.durations_of(f.number);
    const query::Histogram histogram = query::histogram_of(durations);
    std::uint64_t counted = 0;
    for (const std::uint64_t count : histogram.counts) counted += count;
    EXPECT_EQ(counted, f.calls - f.open_calls);
    EXPECT_EQ(clock.to_ns(histogram.of.p99), f.p99_ns);
  }
  EXPECT_EQ(report.functions.size(), naive.functions.size());

  for (const query::Edge& edge : edges.edges()) {
    const std::string caller = edge.caller == query::kNoFunction ? "-" : list[edge.caller].name;
    answers.edges[caller + ">" + list[edge.callee].name] = {edge.calls, edge.total, edge.self};
  }
  EXPECT_EQ(answers.edges, naive.edges);

  // A node's weight is its own time, its total the sum of all weights below: as its calls lasted.
  const query::FlameTree weighed = tree.weighed(nullptr, false);
  std::vector<std::string> path(weighed.nodes().size());
  for (std::size_t i = 1; i < weighed.nodes().size(); ++i) {
    const query::FlameNode& node = weighed.nodes()[i];
    path[i] = (node.parent == 0 ? "" : path[node.parent] + ";") + list[node.function].name;
    answers.paths[path[i]] = {node.side[0].calls, node.side[0].total, node.side[0].self};
  }
  EXPECT_EQ(answers.paths, naive.paths);

  // Weighed by calls, for one function alone: as many as the report has, on the paths that lead there.
  if (list.empty()) return;
  std::vector<bool> first(list.size());
  first[0] = true;
  const query::FlameTree by_calls = tree.weighed(&first, true);
  EXPECT_EQ(by_calls.nodes()[0].side[0].total, std::get<0>(naive.functions[list[0].name]));
  EXPECT_EQ(by_calls.nodes()[0].side[0].calls, by_calls.nodes()[0].side[0].total);
}

TEST(Sums, AllAnswersAgreeOnRandomTraces) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    writing::SyntheticTrace wanted;
    wanted.events = 1500;
    wanted.threads = 1 + seed % 3;
    wanted.functions = 3 + seed % 5;
    wanted.block_events = 200;
    wanted.dropped_blocks = seed % 4 == 0 ? 1 : 0;
    wanted.shape = seed % 2 == 0 ? writing::SyntheticShape::kRandom : writing::SyntheticShape::kFib;
    wanted.seed = seed;
    compare(wanted, {});
    CallFilter shorter;
    shorter.min_ticks = 100;
    compare(wanted, shorter);
  }
}

}  // namespace
}  // namespace karst::analysis
