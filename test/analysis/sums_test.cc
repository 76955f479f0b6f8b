// All answers that add calls up agree with each other and with a second, naive sum, on random traces and filters.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/report.h"
#include "analysis/selection.h"
#include "columns/edges.h"
#include "columns/flame.h"
#include "columns/scope.h"
#include "columns/settle.h"
#include "columns/table.h"
#include "format/note.h"
#include "reader/trace.h"
#include "write/synthetic.h"
#include "write/trace_writer.h"

namespace karst::analysis {
namespace {

/// What is known of a function, a path or a caller with its callee: calls, total, self in ticks.
using Sums = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

/// What is asked about, in the words of the options; the naive sum makes its own sense of them.
struct Asked {
  std::optional<columns::TickRange> range;
  std::string below;  // a part of names
  std::uint64_t min_ticks = 0;
  std::uint64_t request = 0;  // 0: all
  std::size_t thread = ~std::size_t{0};
};

/// Each call looks at all others of its thread and walks up its own stack anew: slow, and nothing to be wrong with.
struct Naive {
  std::map<std::string, Sums> functions, paths, edges;
  std::map<std::string, std::uint64_t> open;

  struct Row {
    std::string name;
    std::uint32_t parent = 0;
    std::uint64_t begin = 0, end = 0, inside = 0;  // `inside`: what is asked about
    bool open = false, kept = false;
  };

  static std::vector<columns::TickRange> times(const reader::Calls& calls, const Asked& asked) {
    std::vector<columns::TickRange> result;
    if (asked.request == 0) result.push_back(asked.range.value_or(columns::TickRange{}));
    std::uint64_t now = 0, since = 0;  // the request at work, and from when on
    const auto work_ends = [&](std::uint64_t at) {
      const columns::TickRange range = asked.range.value_or(columns::TickRange{});
      const std::uint64_t begin = std::max(since, range.begin), end = std::min(at, range.end);
      if (now == asked.request && now != 0 && begin < end) result.push_back({begin, end});
    };
    for (const reader::Note& note : calls.notes) {
      if (note.kind != static_cast<std::uint32_t>(format::NoteKind::kRequest)) continue;
      work_ends(note.ticks);
      now = 0;
      for (std::size_t i = 0; i < note.size; ++i)
        now |= std::uint64_t{static_cast<unsigned char>(calls.note_bytes[note.bytes + i])} << 8 * i;
      since = note.ticks;
    }
    work_ends(calls.last_ticks);
    return result;
  }

  void add(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls, const Asked& asked) {
    const reader::Process& process = trace.processes()[thread.process];
    const std::vector<columns::TickRange> ranges = times(calls, asked);
    std::vector<Row> rows;
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      Row of{trace.function(process, calls.function[row]).name,
             calls.parent[row],
             calls.begin[row],
             calls.begin[row] + calls.duration[row],
             0,
             reader::call_is_open(calls.marks[row]),
             false};
      bool below = asked.below.empty(), long_enough = true, within = false, whole = false;
      for (std::uint32_t up = row; up != reader::kNoParent; up = calls.parent[up]) {
        below = below || trace.function(process, calls.function[up]).name.find(asked.below) != std::string::npos;
        long_enough = long_enough && (calls.duration[up] >= asked.min_ticks || reader::call_is_open(calls.marks[up]));
      }
      for (const columns::TickRange& range : ranges) {
        if (of.begin >= range.end || (of.begin < range.begin && of.end <= range.begin)) continue;
        within = true;
        of.inside += range.clip(of.begin, of.end);
        whole = whole || (of.begin >= range.begin && of.end <= range.end);
      }
      of.open = of.open || !whole;
      of.kept = below && long_enough && within;
      rows.push_back(of);
    }
    const auto caller = [&](std::uint32_t row) {
      std::uint32_t up = rows[row].parent;
      return up == reader::kNoParent || !rows[up].kept ? reader::kNoParent : up;
    };
    const auto name = [&](std::uint32_t row) { return row == reader::kNoParent ? std::string("-") : rows[row].name; };
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      if (!rows[row].kept) continue;
      std::uint64_t self = rows[row].inside;
      for (std::uint32_t child = row + 1; child < rows.size(); ++child)
        if (rows[child].kept && rows[child].parent == row) self -= rows[child].inside;
      std::string path = name(row);
      bool function_above = false, edge_above = false;
      const std::string edge = name(caller(row)) + ">" + name(row);
      for (std::uint32_t above = caller(row); above != reader::kNoParent; above = caller(above)) {
        path = name(above) + ";" + path;
        function_above = function_above || name(above) == name(row);
        edge_above = edge_above || name(caller(above)) + ">" + name(above) == edge;
      }
      const auto put = [&](Sums& to, bool counts_time) {
        ++std::get<0>(to);
        if (counts_time) std::get<1>(to) += rows[row].inside;
        std::get<2>(to) += self;
      };
      put(functions[name(row)], !function_above);
      put(edges[edge], !edge_above);
      put(paths[path], true);
      open[name(row)] += rows[row].open ? 1 : 0;
    }
  }
};

struct Answers {
  std::map<std::string, Sums> functions, paths, edges;
};

// Returns how many calls were asked about.
std::uint64_t compare(const writing::SyntheticTrace& wanted, const Asked& asked) {
  std::vector<std::byte> bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writing::add_synthetic(writer, wanted);
  EXPECT_TRUE(writer.finish());
  auto trace = reader::Trace::open_memory(bytes, "random.karst");
  EXPECT_TRUE(trace);

  const FunctionSet below(*trace, [&](std::string_view name) { return name.find(asked.below) != std::string::npos; });
  CallFilter filter;
  filter.range = asked.range;
  filter.below = asked.below.empty() ? nullptr : &below;
  filter.min_ticks = asked.min_ticks;
  if (asked.request != 0) filter.request = asked.request;
  Naive naive;
  ReportBuilder builder(*trace);
  columns::EdgeSums edges;
  columns::FlameTree tree;
  std::size_t thread_at = 0;
  for (const reader::Process& process : trace->processes()) {
    for (const reader::Thread& thread : process.threads) {
      if (asked.thread != ~std::size_t{0} && asked.thread != thread_at++) continue;
      reader::Calls calls = reader::rebuild_calls(*trace, thread);
      naive.add(*trace, thread, calls, asked);
      filter_calls(calls, thread.process, filter);
      builder.add(thread, calls);
      edges.add(builder.parts().latest());
      tree.add(builder.parts().latest(), columns::kNoFunction);
    }
  }
  const Report report = builder.finish();
  const auto& list = builder.parts().functions().functions();
  const Clock& clock = trace->clock();

  Answers answers;
  for (const FunctionReport& f : report.functions) {
    const auto [calls, total, self] = naive.functions[f.name];
    EXPECT_EQ(std::tuple(f.calls, f.total_ns, f.self_ns), std::tuple(calls, clock.to_ns(total), clock.to_ns(self)));
    EXPECT_EQ(f.open_calls, naive.open[f.name]);
    std::vector<std::uint64_t> durations = builder.durations_of(f.number);
    const columns::Histogram histogram = columns::histogram_of(durations);
    std::uint64_t counted = 0;
    for (const std::uint64_t count : histogram.counts) counted += count;
    EXPECT_EQ(counted, f.calls - f.open_calls);
    EXPECT_EQ(clock.to_ns(histogram.of.p99), f.p99_ns);
  }
  EXPECT_EQ(report.functions.size(), naive.functions.size());

  for (const columns::Edge& edge : edges.edges()) {
    const std::string caller = edge.caller == columns::kNoFunction ? "-" : list[edge.caller].name;
    answers.edges[caller + ">" + list[edge.callee].name] = {edge.calls, edge.total, edge.self};
  }
  EXPECT_EQ(answers.edges, naive.edges);

  // A node's weight is its own time, its total the sum of all weights below: as its calls lasted.
  tree.settle();
  const columns::FlameTree weighed = tree.weighed(nullptr, false);
  std::vector<std::string> path(weighed.nodes().size());
  for (std::size_t i = 1; i < weighed.nodes().size(); ++i) {
    const columns::FlameNode& node = weighed.nodes()[i];
    path[i] = (node.parent == 0 ? "" : path[node.parent] + ";") + list[node.function].name;
    answers.paths[path[i]] = {node.side[0].calls, node.side[0].total, node.side[0].self};
  }
  EXPECT_EQ(answers.paths, naive.paths);

  // Weighed by calls, for one function alone: as many as the report has, on the paths that lead there.
  if (list.empty()) return 0;
  std::vector<bool> first(list.size());
  first[0] = true;
  const columns::FlameTree by_calls = tree.weighed(&first, true);
  EXPECT_EQ(by_calls.nodes()[0].side[0].total, std::get<0>(naive.functions[list[0].name]));
  EXPECT_EQ(by_calls.nodes()[0].side[0].calls, by_calls.nodes()[0].side[0].total);
  return report.calls;
}

writing::SyntheticTrace random_trace(std::uint64_t seed) {
  writing::SyntheticTrace wanted;
  wanted.events = 1500;
  wanted.threads = static_cast<std::uint32_t>(1 + seed % 3);
  wanted.functions = static_cast<std::uint32_t>(3 + seed % 5);
  wanted.block_events = 200;
  wanted.dropped_blocks = seed % 4 == 0 ? 1 : 0;
  wanted.shape = seed % 2 == 0 ? writing::SyntheticShape::kRandom : writing::SyntheticShape::kFib;
  wanted.seed = seed;
  return wanted;
}

// A trace's history takes some 20,000 ticks a thread and begins here.
constexpr std::uint64_t kStart = 3'000'000'000'000;

TEST(Sums, WhatIsLessThanNothingIsTakenFromTheFunctionsOtherParts) {
  struct Part {
    std::uint32_t function;
    std::uint64_t ticks;
  };
  const auto less = [](std::uint64_t ticks) { return std::uint64_t{0} - ticks; };
  std::vector<Part> parts = {{1, 10}, {2, 5}, {1, less(9)}, {1, 20}, {3, less(4)}, {1, 1}, {3, 3}, {4, less(1)}};
  columns::settle(
      parts.size(), [&](std::size_t i) -> std::uint64_t& { return parts[i].ticks; },
      [&](std::size_t i) { return parts[i].function; });
  std::map<std::uint32_t, std::uint64_t> sums;
  std::vector<std::uint64_t> ticks;
  for (const Part& part : parts) {
    sums[part.function] += part.ticks;
    ticks.push_back(part.ticks);
  }
  EXPECT_EQ(sums, (std::map<std::uint32_t, std::uint64_t>{{1, 22}, {2, 5}, {3, 0}, {4, 0}}));
  EXPECT_EQ(ticks, (std::vector<std::uint64_t>{8, 5, 0, 14, 0, 0, 0, 0}));  // 9/31 of 10, 30 and 31 are gone
}

TEST(Sums, TracingTookTimeOnACpuFirstThenOfWhatThereIsMost) {
  const auto without = [](reader::StateTimes times, std::uint64_t cost) {
    columns::take_cost_out(times, cost);
    return std::array{times.running, times.runnable, times.blocked, times.unknown};
  };
  using Times = std::array<std::uint64_t, 4>;
  EXPECT_EQ(without({7, 1, 3, 0}, 0), (Times{7, 1, 3, 0}));
  EXPECT_EQ(without({7, 1, 3, 0}, 5), (Times{2, 1, 3, 0}));
  EXPECT_EQ(without({7, 1, 3, 0}, 9), (Times{0, 1, 1, 0}));
  EXPECT_EQ(without({7, 4, 3, 0}, 8), (Times{0, 3, 3, 0}));
  EXPECT_EQ(without({7, 1, 3, 0}, 11), (Times{~std::uint64_t{0} - 3, 1, 3, 0}));  // -4: the sum is true
}

TEST(Sums, AllAnswersAgreeOnRandomTraces) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_GT(compare(random_trace(seed), {}), 300U);
    EXPECT_GT(compare(random_trace(seed), {.range = {}, .below = {}, .min_ticks = 100}), 50U);
  }
}

TEST(Sums, AllAnswersAgreeUnderEachFilter) {
  std::uint64_t asked_about = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    writing::SyntheticTrace wanted = random_trace(seed);
    const columns::TickRange range{kStart + 3000 + seed * 100, kStart + 9000 + seed * 500};
    asked_about += compare(wanted, {.range = range, .below = {}});
    asked_about += compare(wanted, {.range = {}, .below = "step_1"});
    asked_about += compare(wanted, {.range = {}, .below = "step_2", .min_ticks = 80});
    asked_about += compare(wanted, {.range = range, .below = "step_0", .min_ticks = 60});
    asked_about +=
        compare(wanted, {.range = {}, .below = {}, .min_ticks = 0, .request = 0, .thread = seed % wanted.threads});
    wanted.request_events = 40 + seed;
    asked_about += compare(wanted, {.range = {}, .below = {}, .min_ticks = 0, .request = 1});
    asked_about += compare(wanted, {.range = range, .below = {}, .min_ticks = 0, .request = 4});
    asked_about += compare(wanted, {.range = {}, .below = "step_1", .min_ticks = 0, .request = 5});
  }
  EXPECT_GT(asked_about, 5'000U);
}

TEST(Sums, ARequestThatIsWorkedOnSeveralTimesCountsItsCallsOnce) {
  // A thread's numbers begin anew after three: each request is then taken up again and again.
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    writing::SyntheticTrace wanted = random_trace(seed);
    wanted.dropped_blocks = 0;
    wanted.request_events = 30;
    wanted.requests = 3;
    EXPECT_GT(compare(wanted, {.range = {}, .below = {}, .min_ticks = 0, .request = 1}), 40U);
  }
}

}  // namespace
}  // namespace karst::analysis
