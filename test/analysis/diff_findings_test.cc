// What karst diff says first: who calls what how often, as counts are exact.
#include "analysis/diff_findings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/diff_calls.h"
#include "analysis/diff_counts.h"
#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using RunCounts = std::vector<std::uint64_t>;

TEST(DiffFindings, APauseOfTracingsHidesNoCalls) {
  FunctionDiff f;
  f.counts = Counts::kExact;
  f.runs[0] = f.runs[1] = 1;
  f.side[0].calls = 1000;
  f.side[0].total_ns = 340'000;
  f.side[0].total_cost_ns = 10'000;
  f.side[1].calls = 3000;
  f.side[1].total_ns = 1'030'000;
  f.side[1].total_cost_ns = 730'000;  // 700 us of them once
  const double all_ns[] = {400'000, 1'100'000};
  EXPECT_TRUE(is_over(f, 0.05, all_ns));
  // What calls cost may be off by as much as it is.
  f.side[0].total_cost_ns = 400'000;
  f.side[1].total_cost_ns = 1'200'000;
  EXPECT_FALSE(is_over(f, 0.05, all_ns));
}

TEST(DiffCounts, AreExactUnlessRunsOfASideDiffer) {
  EXPECT_EQ(compare_counts(RunCounts{5}, RunCounts{5}, {}), Counts::kSame);
  EXPECT_EQ(compare_counts(RunCounts{5}, RunCounts{6}, {}), Counts::kExact);
  EXPECT_EQ(compare_counts(RunCounts{5, 5}, RunCounts{6, 6}, {}), Counts::kExact);
  EXPECT_EQ(compare_counts(RunCounts{5, 7}, RunCounts{6, 8}, {}), Counts::kWithinRuns);
  EXPECT_EQ(compare_counts(RunCounts{5, 7}, RunCounts{9, 9}, {}), Counts::kWithinRuns);
  EXPECT_EQ(compare_counts(RunCounts{5, 7}, RunCounts{12, 13}, {}), Counts::kBeyondRuns);
}

TEST(DiffCounts, AreNotCertainOfThreadsInOneRunOrOfIncompleteTraces) {
  EXPECT_EQ(compare_counts(RunCounts{100}, RunCounts{120}, {true, true}), Counts::kMayVary);
  EXPECT_EQ(compare_counts(RunCounts{100}, RunCounts{300}, {true, true}), Counts::kExact);
  EXPECT_EQ(compare_counts(RunCounts{100}, RunCounts{300}, {false, false}), Counts::kIncomplete);
  EXPECT_EQ(compare_counts(RunCounts{100}, RunCounts{100}, {false, false}), Counts::kSame);
}

/// main calls handle 100 times, which calls lookup, which calls leaf.
struct Lookups {
  test::SampleTrace sample;
  std::unique_ptr<reader::Trace> trace;
  std::unique_ptr<ReportBuilder> builder;
  columns::EdgeSums edges;
  Report report;

  Lookups(const std::string& name, int lookups, std::uint64_t leaf_ns) {
    sample.process(10, "app", {"main", "handle", "lookup", "leaf"}).thread(10, "app");
    std::uint64_t now = 1000;
    sample.enter(1, now);
    for (int i = 0; i < 100; ++i) {
      sample.enter(2, now += 10);
      for (int n = 0; n < lookups; ++n) {
        now += 10;
        sample.enter(3, now).call(4, now + 100, now + 100 + leaf_ns);
        sample.exit(3, now += 200 + leaf_ns);
      }
      sample.exit(2, now += 10);
    }
    sample.exit(1, now + 10);
    trace = std::make_unique<reader::Trace>(sample.open(name));
    builder = std::make_unique<ReportBuilder>(*trace);
    const reader::Thread& thread = trace->processes()[0].threads[0];
    const reader::Calls calls = reader::rebuild_calls(*trace, thread);
    builder->add(thread, calls);
    edges.add(builder->parts().latest());
    report = builder->finish();
  }
  Measured measured() const { return {report, *builder, *trace, &edges.edges()}; }
};

struct Found {
  std::vector<FunctionDiff> functions;
  std::vector<Finding> found;
  Found(const Lookups& a, const Lookups& b) {
    const Measured first = a.measured(), second = b.measured();
    functions = compare({&first, 1}, {&second, 1}, {});
    found = findings(functions, compare_calls({&first, 1}, {&second, 1}));
  }
  bool fails(double limit) const {
    const double all_ns[] = {all_self_ns(functions, 0), all_self_ns(functions, 1)};
    return std::any_of(functions.begin(), functions.end(), [&](const auto& f) { return is_over(f, limit, all_ns); });
  }
};

TEST(DiffFindings, NameThePathThatChangedAndNotWhatFollowsFromIt) {
  const Lookups a("a.karst", 1, 100), b("b.karst", 3, 100);
  const Found answer(a, b);
  const Finding& first = answer.found.front();
  EXPECT_EQ(first.kind, Finding::Kind::kCount);
  EXPECT_EQ(first.caller + ">" + first.function, "handle>lookup");
  EXPECT_EQ(first.calls[0], 100);
  EXPECT_EQ(first.calls[1], 300);
  EXPECT_NEAR(first.more_ns, 200 * 300, 1);  // each takes 300 ns
  EXPECT_TRUE(first.certain);
  EXPECT_TRUE(std::none_of(answer.found.begin() + 1, answer.found.end(),
                           [](const Finding& f) { return f.kind == Finding::Kind::kCount; }));
  EXPECT_TRUE(answer.fails(0.05));
  EXPECT_FALSE(answer.fails(5));
  EXPECT_FALSE(Found(b, a).fails(0.05));
}

TEST(DiffFindings, NameTheFunctionWhoseOwnCodeIsSlower) {
  const Lookups a("a.karst", 1, 100), b("b.karst", 1, 400);
  const Found answer(a, b);
  EXPECT_EQ(answer.found.front().kind, Finding::Kind::kTime);
  EXPECT_EQ(answer.found.front().function, "leaf");
  EXPECT_TRUE(answer.found.front().certain);
  EXPECT_NEAR(answer.found.front().more_ns, 100 * 300, 1);
  EXPECT_TRUE(answer.fails(0.05));
}

TEST(DiffFindings, OfOneProgramTwiceNothingIsCertain) {
  const Lookups a("a.karst", 2, 100), b("b.karst", 2, 112);  // one run a side cannot tell
  const Found answer(a, b);
  EXPECT_TRUE(std::none_of(answer.found.begin(), answer.found.end(), [](const Finding& f) { return f.certain; }));
  EXPECT_FALSE(answer.fails(0.05));
}

}  // namespace
}  // namespace karst::analysis
