// Sums of calls that come in pieces are those of all calls at once, with what tracing took.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "analysis/report.h"
#include "analysis/tracing_cost.h"
#include "columns/duration_counts.h"
#include "columns/edges.h"
#include "columns/flame.h"
#include "columns/table.h"
#include "reader/pieces.h"
#include "write/synthetic.h"
#include "write/trace_writer.h"

namespace karst::analysis {
namespace {

constexpr reader::CallCost kCost{20 * format::kCallCostUnit, 5 * format::kCallCostUnit, 30 * format::kCallCostUnit};

/// Adds up all threads of a trace.
struct Added {
  explicit Added(const reader::Trace& trace) : builder(trace) {}

  void add(const reader::Thread& thread, const reader::Piece& piece) {
    builder.add(thread, piece);
    if (piece.last) return;
    edges.add(builder.parts().latest());
    tree.add(builder.parts().latest(), columns::kNoFunction);
    below.add(builder.parts().latest(), 1);
    reader::each_sent(piece, [&](std::uint32_t row) { taken += piece.calls.taken[row]; });
  }
  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    const auto line = [&lines](auto... values) {
      lines.emplace_back();
      ((lines.back() += std::to_string(values) + " "), ...);
    };
    Report report = builder.finish();
    sort_by_name(report);
    for (const FunctionReport& f : report.functions) {
      line(f.number, f.calls, f.open_calls, f.unwound_calls, f.jumped_calls, f.tail_calls, f.left_calls, f.left_max_ns);
      line(f.thread_long_calls, f.total_ns, f.self_ns, f.total_cost_ns, f.self_cost_ns, f.tracing_ns);
      line(f.min_ns, f.mean_ns, f.p50_ns, f.p99_ns, f.max_ns);
    }
    line(report.threads, report.calls, report.events, report.self_ns, report.span_ns, report.missing_exits, taken);
    for (const columns::Edge& e : edges.edges()) line(e.caller, e.callee, e.calls, e.total, e.self);
    for (const columns::FlameTree* of : {&tree, &below})
      for (const columns::FlameNode& n : of->nodes())
        line(n.parent, n.function, n.side[0].calls, n.side[0].total, n.side[0].self);
    return lines;
  }

  ReportBuilder builder;
  columns::EdgeSums edges;
  columns::FlameTree tree, below;
  std::uint64_t taken = 0;
};

std::vector<std::string> added_whole(const reader::Trace& trace) {
  Added added(trace);
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      reader::Calls calls = reader::rebuild_calls(trace, thread);
      take_cost_out(calls, kCost, {});
      added.add(thread, reader::whole_piece(calls));
      added.add(thread, reader::last_piece(calls));
    }
  }
  return added.lines();
}

std::vector<std::string> added_in_pieces(const reader::Trace& trace, std::size_t rows) {
  Added added(trace);
  reader::PieceOptions options;
  options.rows = rows;
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) {
      CostOfPieces cost(kCost);
      each_piece(trace, thread, options, [&](const reader::Piece& piece, reader::Calls& calls) {
        cost.take_out(piece, calls);
        added.add(thread, piece);
      });
    }
  }
  return added.lines();
}

TEST(PieceSums, AreThoseOfAllCallsAtOnce) {
  using writing::SyntheticShape;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    writing::SyntheticTrace wanted;
    wanted.events = 9000;
    wanted.threads = static_cast<std::uint32_t>(1 + seed % 3);
    wanted.functions = static_cast<std::uint32_t>(3 + seed % 5);
    wanted.block_events = 200;
    wanted.dropped_blocks = seed % 3;
    wanted.shape = seed % 4 == 0   ? SyntheticShape::kFib
                   : seed % 4 == 1 ? SyntheticShape::kFlat
                   : seed % 4 == 2 ? SyntheticShape::kDeep
                                   : SyntheticShape::kRandom;
    wanted.seed = seed;
    std::vector<std::byte> bytes;
    auto writer = writing::TraceWriter::to_memory(bytes);
    writing::add_synthetic(writer, wanted);
    ASSERT_TRUE(writer.finish());
    const auto trace = reader::Trace::open_memory(bytes, "random.karst");
    ASSERT_TRUE(trace);
    const std::vector<std::string> expected = added_whole(*trace);
    ASSERT_GT(expected.size(), 6U);
    for (const std::size_t rows : {1, 30, 500}) {
      SCOPED_TRACE(rows);
      EXPECT_EQ(added_in_pieces(*trace, rows), expected);
    }
  }
}

TEST(DurationCounts, HaveThePercentilesOfAllDurations) {
  std::uint64_t state = 1;
  for (const std::uint64_t most : {3ULL, 900ULL, 50'000ULL, 3'000'000ULL, 1ULL << 60}) {
    SCOPED_TRACE(most);
    columns::DurationCounts counts;
    std::vector<std::uint64_t> all;
    for (std::size_t i = 1; i <= 200'000; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::uint64_t ticks = i % 100 == 0 ? state >> 3 : (state >> 3) % most;
      counts.add(ticks);
      all.push_back(ticks);
      if (i != 1 && i != 1000 && i != 30'000 && i != 200'000) continue;
      const columns::Percentiles expected = columns::percentiles(all), found = counts.percentiles();
      EXPECT_EQ(std::tuple(found.p50, found.p99), std::tuple(expected.p50, expected.p99));
    }
    std::vector<std::uint64_t> values = counts.values();
    std::sort(values.begin(), values.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(values, all);
    EXPECT_EQ(counts.size(), all.size());
  }
}

}  // namespace
}  // namespace karst::analysis
