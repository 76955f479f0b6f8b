// Tables, flame graphs and single calls: against analysis/report, against each other, and against naive counts.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "analysis/report.h"
#include "columns/flame.h"
#include "columns/table.h"
#include "engine/api/calls.h"
#include "engine/protocol.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using columns::FunctionRow;
using engine::TickRange;

std::uint64_t ns(const engine::TraceIndex& index, std::uint64_t ticks) { return index.trace().clock().to_ns(ticks); }

TEST(Statistics, OfAWholeTraceAreThoseOfReport) {
  for (const bool open : {false, true}) {
    const auto made = test::random_index({.seed = 3, .threads = 3, .calls = 4000, .open_ends = open, .processes = 2});
    const engine::TraceIndex& index = *made.index;
    analysis::ReportBuilder builder(index.trace());
    for (const auto& process : index.trace().processes()) {
      for (const auto& thread : process.threads) builder.add(thread, reader::rebuild_calls(index.trace(), thread));
    }
    const analysis::Report report = builder.finish();
    std::map<std::string, analysis::FunctionReport> by_name;
    for (const auto& f : report.functions) by_name[f.name] = f;

    const columns::Table table = columns::table_of(test::scope_of(index));
    EXPECT_EQ(table.calls, report.calls);
    ASSERT_EQ(table.functions.size(), by_name.size());
    for (const FunctionRow& f : table.functions) {
      const auto& want = by_name.at(index.functions().functions()[f.function].name);
      EXPECT_EQ(f.calls, want.calls);
      EXPECT_EQ(f.open_calls, want.open_calls);
      EXPECT_EQ(ns(index, f.total), want.total_ns);
      EXPECT_EQ(ns(index, f.self), want.self_ns);
      EXPECT_EQ(ns(index, f.min), want.min_ns);
      EXPECT_EQ(ns(index, f.max), want.max_ns);
      EXPECT_EQ(ns(index, f.of.p50), want.p50_ns);
      EXPECT_EQ(ns(index, f.of.p99), want.p99_ns);
      EXPECT_EQ(ns(index, f.sum) / std::max<std::uint64_t>(f.complete, 1), want.mean_ns);
      const columns::Histogram histogram = columns::histogram_of(test::scope_of(index), f.function);
      EXPECT_EQ(std::tie(histogram.calls, histogram.open_calls, histogram.min, histogram.max, histogram.of.p50,
                         histogram.of.p99, histogram.sum),
                std::tie(f.calls, f.open_calls, f.min, f.max, f.of.p50, f.of.p99, f.sum));
      std::uint64_t counted = 0;
      for (const std::uint64_t count : histogram.counts) counted += count;
      EXPECT_EQ(counted, f.complete);
      ASSERT_EQ(histogram.edges.size(), histogram.counts.size() + 1);
      EXPECT_LE(histogram.edges.front(), f.min);
      EXPECT_GT(histogram.edges.back(), f.max);
    }
  }
}

// What a range holds, call by call.
struct Naive {
  std::uint64_t calls = 0, total = 0, self = 0;
};
std::map<std::uint32_t, Naive> naive_range(const engine::TraceIndex& index, TickRange range) {
  std::map<std::uint32_t, Naive> by_function;
  for (const engine::ThreadIndex& thread : index.threads()) {
    const engine::CallColumns& calls = thread.calls;
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      const bool overlaps =
          calls.begin[row] < range.end && (calls.end(row) > range.begin || calls.begin[row] >= range.begin);
      if (!overlaps) continue;
      Naive& of = by_function[index.function_of(thread, row)];
      ++of.calls;
      const std::uint64_t inside = range.clip(calls.begin[row], calls.end(row));
      of.self += inside;
      bool outermost = true;
      for (std::uint32_t up = calls.parent[row]; up != reader::kNoParent; up = calls.parent[up]) {
        outermost = outermost && calls.function[up] != calls.function[row];
      }
      if (outermost) of.total += inside;
      const std::uint32_t parent = calls.parent[row];
      if (parent != reader::kNoParent) by_function[index.function_of(thread, parent)].self -= inside;
    }
  }
  std::erase_if(by_function, [](const auto& entry) { return entry.second.calls == 0; });
  return by_function;
}

TEST(Statistics, OfARangeAreClippedToIt) {
  const auto made = test::random_index({.seed = 8, .threads = 2, .calls = 1500});
  const engine::TraceIndex& index = *made.index;
  std::mt19937_64 random(8);
  const std::uint64_t span = index.last_ticks() - index.origin();
  for (int i = 0; i < 40; ++i) {
    TickRange range;
    range.begin = index.origin() + random() % span;
    range.end = range.begin + 1 + random() % (i % 2 == 0 ? 1000 : span);
    const auto want = naive_range(index, range);
    const columns::Table table = columns::table_of(test::scope_of(index, range));
    ASSERT_EQ(table.functions.size(), want.size());
    for (const FunctionRow& f : table.functions) {
      const Naive& of = want.at(f.function);
      EXPECT_EQ(std::tie(f.calls, f.total, f.self), std::tie(of.calls, of.total, of.self));
    }
    // The flame graph is the same calls again.
    const columns::FlameTree tree = columns::flame(test::scope_of(index, range), engine::kNoFunction);
    std::map<std::uint32_t, Naive> of_tree;
    for (std::size_t n = 1; n < tree.nodes().size(); ++n) {
      of_tree[tree.nodes()[n].function].calls += tree.nodes()[n].side[0].calls;
      of_tree[tree.nodes()[n].function].self += tree.nodes()[n].side[0].self;
    }
    for (const FunctionRow& f : table.functions) {
      EXPECT_EQ(of_tree[f.function].calls, f.calls);
      EXPECT_EQ(of_tree[f.function].self, f.self);
    }
  }
}

TEST(Flame, SumsHold) {
  const auto made = test::random_index({.seed = 6, .threads = 3, .calls = 3000});
  const engine::TraceIndex& index = *made.index;
  const columns::FlameTree tree = columns::flame(test::scope_of(index), engine::kNoFunction);
  const columns::FlameTree inverted = tree.inverted();
  const columns::Table table = columns::table_of(test::scope_of(index));
  EXPECT_EQ(tree.nodes()[0].side[0].calls, index.calls());
  EXPECT_EQ(tree.nodes()[0].side[0].total, table.self);
  EXPECT_EQ(inverted.nodes()[0].side[0].total, table.self);
  for (const FunctionRow& f : table.functions) {
    const std::uint32_t node = inverted.find({f.function});
    ASSERT_NE(node, columns::FlameTree::kRoot);
    EXPECT_EQ(inverted.nodes()[node].side[0].total, f.self);
    EXPECT_EQ(inverted.nodes()[node].side[0].calls, f.calls);
  }
  for (const double share : {0.0, 0.001, 0.05, 1.0}) {
    for (const columns::FlameTree* of : {&tree, &inverted}) {
      const columns::FlameView shown = columns::prune(*of, 0, share);
      std::uint64_t self = 0;
      std::vector<std::uint64_t> children(shown.nodes.size());
      for (std::size_t i = 0; i < shown.nodes.size(); ++i) {
        const auto& node = shown.nodes[i];
        self += node.side[0].self;
        if (i == 0) continue;
        ASSERT_LT(node.parent, static_cast<std::int64_t>(i));
        children[static_cast<std::size_t>(node.parent)] += node.side[0].total;
      }
      EXPECT_EQ(self, table.self) << share;
      for (std::size_t i = 0; i < shown.nodes.size(); ++i) {
        if (shown.nodes[i].function != columns::kFlameMerged) {
          EXPECT_EQ(children[i] + shown.nodes[i].side[0].self, shown.nodes[i].side[0].total);
        }
      }
    }
  }
}

TEST(Flame, OfAFunctionHasItsOutermostCallsAsRoots) {
  test::SampleTrace sample;
  sample.process(1, "app", {"main", "f", "g"}).thread(1, "t");
  sample.enter(1, 1000)
      .enter(2, 1100)
      .enter(2, 1200)
      .call(3, 1300, 1400)
      .exit(2, 1500)
      .exit(2, 1600)
      .call(3, 1700, 1800)
      .exit(1, 2000);
  const auto index = test::index_of(sample);
  const columns::FlameTree tree = columns::flame(test::scope_of(*index), 1);
  EXPECT_EQ(tree.nodes()[0].side[0].total, 500U);
  EXPECT_EQ(tree.nodes()[tree.find({1})].side[0].self, 200U);
  EXPECT_EQ(tree.nodes()[tree.find({1, 1})].side[0].self, 200U);
  EXPECT_EQ(tree.nodes()[tree.find({1, 1, 2})].side[0].total, 100U);
  EXPECT_EQ(tree.find({2}), columns::FlameTree::kRoot);
}

TEST(Flame, DeepRecursionIsSummedBeyondSomeCallers) {
  test::SampleTrace sample;
  sample.process(1, "app", {"f"}).thread(1, "t");
  constexpr std::uint64_t kDeep = 20'000;
  for (std::uint64_t i = 0; i < kDeep; ++i) sample.enter(1, 1000 + i);
  for (std::uint64_t i = 0; i < kDeep; ++i) sample.exit(1, 1000 + kDeep + i);
  const auto index = test::index_of(sample);
  const columns::FlameTree tree = columns::flame(test::scope_of(*index), engine::kNoFunction);
  EXPECT_EQ(tree.nodes().size(), kDeep + 1);
  const columns::FlameTree inverted = tree.inverted();
  EXPECT_EQ(inverted.nodes()[0].side[0].total, tree.nodes()[0].side[0].total);
  std::uint64_t self = 0;
  for (const auto& node : inverted.nodes()) self += node.side[0].self;
  EXPECT_EQ(self, tree.nodes()[0].side[0].total);
}

TEST(Flame, TwoSetsAreMergedByPath) {
  const auto made = test::random_index({.seed = 6, .threads = 2, .calls = 800});
  engine::Scope first = test::scope_of(*made.index);
  engine::Scope second = first;
  first.parts.pop_back();
  second.parts.erase(second.parts.begin());
  columns::FlameTree tree = columns::flame(first, engine::kNoFunction);
  const columns::FlameTree other = columns::flame(second, engine::kNoFunction);
  tree.merge(other, nullptr, true);
  std::uint64_t self[2] = {0, 0};
  for (const auto& node : tree.nodes()) {
    for (int side = 0; side < 2; ++side) self[side] += node.side[side].self;
  }
  EXPECT_EQ(self[0], columns::table_of(first).self);
  EXPECT_EQ(self[1], columns::table_of(second).self);
  EXPECT_EQ(tree.nodes()[0].side[1].total, other.nodes()[0].side[0].total);
}

TEST(Calls, SubtreesAndChildren) {
  const auto made = test::random_index({.seed = 12, .threads = 1, .calls = 1500});
  const engine::ThreadIndex& thread = made.index->threads()[0];
  const engine::CallColumns& calls = thread.calls;
  for (std::uint32_t row = 0; row < calls.size(); row += 3) {
    std::set<std::uint32_t> within = {row};
    std::uint64_t count = 0, total = 0, longest = 0;
    for (std::uint32_t other = row + 1; other < calls.size(); ++other) {
      if (within.contains(calls.parent[other])) within.insert(other);
      if (calls.parent[other] != row) continue;
      ++count;
      total += calls.duration[other];
      longest = std::max(longest, calls.duration[other]);
    }
    EXPECT_EQ(engine::subtree_end(calls, row), row + within.size()) << row;
    const reader::CallCost cost{21 * format::kCallCostUnit, 8 * format::kCallCostUnit, 9 * format::kCallCostUnit};
    const std::vector<analysis::NotedCost> noted = {{7, calls.begin[7] + 3, 5}, {row, calls.begin[row] + 2, 1}};
    const analysis::CostWithin costs(calls, row, cost, noted);
    const engine::Children children = engine::children_of(*made.index, thread, row, 5, costs);
    EXPECT_EQ(children.cost, analysis::cost_of_call(calls, row, cost, noted));
    EXPECT_EQ(children.count, count);
    const analysis::CostWithin nothing(calls, row, {}, {});
    EXPECT_EQ(engine::children_of(*made.index, thread, row, 5, nothing).self, calls.duration[row] - total);
    EXPECT_EQ(children.longest.size(), std::min<std::uint64_t>(count, 5));
    if (count != 0) {
      EXPECT_EQ(calls.duration[children.longest.front()], longest);
    }
    std::uint64_t by_function = 0;
    for (const auto& of : children.functions) by_function += of.calls;
    EXPECT_EQ(by_function, count);
  }
}

TEST(Calls, OccurrencesStepThroughAllCallsOfAFunction) {
  const auto made = test::random_index({.seed = 13, .threads = 3, .calls = 700});
  const engine::Scope scope = test::scope_of(*made.index);
  const std::uint32_t function = 2;
  std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>> all;
  for (const auto& part : scope.parts) {
    for (std::uint32_t row = 0; row < part.thread->calls.size(); ++row) {
      if (part.function(row) == function) all.emplace_back(part.thread->calls.begin[row], part.number, row);
    }
  }
  std::sort(all.begin(), all.end());
  std::optional<engine::CallPlace> at;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = engine::occurrences(scope, function, engine::OccurrenceOrder::kTime, false, at, 1);
    EXPECT_EQ(found.count, all.size());
    EXPECT_EQ(found.rank, i);
    ASSERT_EQ(found.calls.size(), 1U);
    const engine::CallPlace next = found.calls[0];
    EXPECT_EQ(std::make_tuple(next.begin, next.thread, next.row), all[i]);
    if (at) {
      const auto back = engine::occurrences(scope, function, engine::OccurrenceOrder::kTime, true, next, 1);
      ASSERT_EQ(back.calls.size(), 1U);
      EXPECT_EQ(std::tie(back.calls[0].thread, back.calls[0].row), std::tie(at->thread, at->row));
    }
    at = next;
  }
  EXPECT_TRUE(engine::occurrences(scope, function, engine::OccurrenceOrder::kTime, false, at, 1).calls.empty());
  const auto slowest =
      engine::occurrences(scope, function, engine::OccurrenceOrder::kDuration, false, std::nullopt, 10);
  ASSERT_EQ(slowest.calls.size(), 10U);
  for (std::size_t i = 1; i < 10; ++i) EXPECT_GE(slowest.calls[i - 1].duration, slowest.calls[i].duration);
  const auto rest =
      engine::occurrences(scope, function, engine::OccurrenceOrder::kDuration, false, slowest.calls[4], 5);
  EXPECT_EQ(rest.rank, 5U);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(rest.calls[i].row, slowest.calls[i + 5].row);
}

}  // namespace
}  // namespace karst
