// karst diff's test: silent where nothing changed, at the rate that it states, and finds what was planted.
#include "analysis/diff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "analysis/tracing_cost.h"
#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

constexpr std::uint32_t kFunctions = 10;
constexpr std::uint32_t kPlanted = 4;

struct Traced {
  test::SampleTrace sample;
  std::unique_ptr<reader::Trace> trace;
  std::unique_ptr<ReportBuilder> builder;
  Report report;

  // Calls of ten functions in turn, with durations that vary by a tenth; those of kPlanted are longer by `more`. All of
  // a function's are longer or shorter in this run, by a standard deviation of `run`; 0: it is a part of one trace.
  Traced(std::uint32_t seed, std::uint32_t calls, double more, double run = 0) {
    std::mt19937 random(seed);
    std::vector<std::string> names;
    std::array<double, kFunctions + 1> in_run{};
    for (double& factor : in_run) factor = std::exp(run * std::normal_distribution(0.0, 1.0)(random));
    for (std::uint32_t i = 1; i <= kFunctions; ++i) names.push_back("f" + std::to_string(i));
    sample.process(10, "app", names).thread(10, "app");
    std::uint64_t now = 1001;
    for (std::uint32_t call = 0; call < calls; ++call) {
      for (std::uint32_t f = 1; f <= kFunctions; ++f) {
        const double usual = 1000.0 * f * (f == kPlanted ? 1 + more : 1) * in_run.at(f);
        const auto length = static_cast<std::uint64_t>(usual * std::exp(std::normal_distribution(0.0, 0.1)(random)));
        sample.call(f, now, now + length);
        now += length + 10;
      }
    }
    trace = std::make_unique<reader::Trace>(sample.open(run == 0 ? "one trace" : "run " + std::to_string(seed)));
    builder = std::make_unique<ReportBuilder>(*trace);
    const reader::Thread& thread = trace->processes()[0].threads[0];
    const reader::Calls rows = reader::rebuild_calls(*trace, thread);
    builder->add(thread, rows);
    report = builder->finish();
  }
  Measured measured() const { return {report, *builder, *trace}; }
};

std::vector<FunctionDiff> compare_two(const Measured& a, const Measured& b, const DiffOptions& options) {
  return compare({&a, 1}, {&b, 1}, options);
}

TEST(Diff, SilentOnTwoSamplesOfOneDistributionAtTheStatedRate) {
  // At most 1% of the pairs may have any function that is said to differ, whatever the size of the difference.
  DiffOptions any_size;
  any_size.least_change = 0;
  int loud = 0, listed = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const Traced a(2 * seed + 1, 100, 0), b(2 * seed + 2, 100, 0);
    const auto differ = [](const std::vector<FunctionDiff>& functions) {
      return std::any_of(functions.begin(), functions.end(), [](const FunctionDiff& f) { return f.changed; });
    };
    loud += differ(compare_two(a.measured(), b.measured(), any_size)) ? 1 : 0;
    listed += differ(compare_two(a.measured(), b.measured(), {})) ? 1 : 0;
  }
  EXPECT_LE(loud, 3);  // of 100 at a rate of 1%: four and more come once in fifty times
  EXPECT_LE(listed, loud);
}

TEST(Diff, FindsFivePercentInFunctionsOfAThousandCalls) {
  int found = 0, others = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Traced a(2 * seed + 1001, 1000, 0), b(2 * seed + 1002, 1000, 0.05);
    for (const FunctionDiff& f : compare_two(a.measured(), b.measured(), {})) {
      const bool planted = f.name == "f" + std::to_string(kPlanted);
      if (f.changed) ++(planted ? found : others);
      if (planted) {
        EXPECT_NEAR(f.change(), 0.05, 0.03);
        EXPECT_EQ(f.side[0].calls, 1000U);
      }
    }
  }
  EXPECT_EQ(found, 20);
  EXPECT_LE(others, 1);
}

bool is_changed(const FunctionDiff& f) { return f.changed; }

// A function that is next to nothing of the run is not the change that one looks for, however sure it is.
TEST(Diff, AFunctionThatIsNextToNothingOfTheRunHasNotChanged) {
  const auto measure = [](std::uint64_t times) {
    auto run = std::make_unique<Traced>(1, 0, 0);
    test::SampleTrace sample;
    sample.process(10, "app", {"whole", "small", "tiny"}).thread(10, "app");
    std::uint64_t now = 1001;
    constexpr std::uint64_t kLengths[] = {100'000'000, 1'000'000, 10'000};
    for (std::uint64_t call = 0; call < 100; ++call) {
      for (std::uint32_t f = 1; f <= 3; ++f) {
        const std::uint64_t length = kLengths[f - 1] * (f == 1 ? 1 : times) + call % 10 * f;
        sample.call(f, now, now + length);
        now += length + 10;
      }
    }
    run->trace = std::make_unique<reader::Trace>(sample.open("run " + std::to_string(times)));
    run->builder = std::make_unique<ReportBuilder>(*run->trace);
    const reader::Thread& thread = run->trace->processes()[0].threads[0];
    run->builder->add(thread, reader::rebuild_calls(*run->trace, thread));
    run->report = run->builder->finish();
    return run;
  };
  const auto before = measure(1), after = measure(3);
  for (const FunctionDiff& f : compare_two(before->measured(), after->measured(), {})) {
    EXPECT_EQ(f.changed, f.name == "small") << f.name;
    if (f.name == "tiny") {
      EXPECT_NEAR(f.change(), 2, 0.01);
    }
  }
}

TEST(Diff, SilentOnRunsThatDifferAsRunsDo) {
  DiffOptions any_size;
  any_size.least_change = 0;
  int loud = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const Traced a(2 * seed + 3001, 400, 0, kRunsDiffer), b(2 * seed + 3002, 400, 0, kRunsDiffer);
    const auto functions = compare_two(a.measured(), b.measured(), any_size);
    loud += std::any_of(functions.begin(), functions.end(), is_changed) ? 1 : 0;
  }
  EXPECT_LE(loud, 4);
}

std::vector<FunctionDiff> compare_runs(std::uint32_t seed, std::uint32_t runs, double more, double differ) {
  std::vector<Traced> sides[2];
  std::vector<Measured> measured[2];
  for (std::uint32_t i = 0; i < 2 * runs; ++i) sides[i % 2].emplace_back(seed + i, 1000, i % 2 == 0 ? 0 : more, differ);
  for (int at = 0; at < 2; ++at)
    for (const Traced& run : sides[at]) measured[at].push_back(run.measured());
  return compare(measured[0], measured[1], {});
}

// Also where they differ by more than is usual.
TEST(Diff, SeveralRunsSayHowMuchTheyDiffer) {
  int loud = 0, found = 0, others = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const auto alike = compare_runs(100 * seed + 5001, 5, 0, 2 * kRunsDiffer);
    loud += std::any_of(alike.begin(), alike.end(), is_changed) ? 1 : 0;
    for (const FunctionDiff& f : compare_runs(100 * seed + 7001, 4, 0.05, kRunsDiffer))
      if (f.changed) ++(f.name == "f" + std::to_string(kPlanted) ? found : others);
  }
  EXPECT_LE(loud, 2);
  EXPECT_GE(found, 19);
  EXPECT_LE(others, 1);
  const auto one = compare_runs(1, 3, 1.0, 0);
  EXPECT_EQ(one[0].name, "f" + std::to_string(kPlanted));
  EXPECT_EQ(one[0].side[0].calls, 3000U);
  EXPECT_NEAR(one[0].change(), 1, 0.03);
}

/// f calls g so many times, which takes 4 ns and tracing 20 more; `longer` is what f itself takes more.
std::vector<FunctionDiff> diff_of_callers(const std::array<std::uint64_t, 2>& calls, std::uint64_t longer,
                                          bool without_cost) {
  constexpr std::uint32_t kCost = 20;  // of a call
  std::vector<std::unique_ptr<reader::Trace>> traces;
  std::vector<std::unique_ptr<ReportBuilder>> builders;
  std::vector<Report> reports;
  std::mt19937 random(1);
  for (std::size_t side = 0; side < 2; ++side) {
    test::SampleTrace sample;
    sample.process(10, "app", {"f", "g"}).thread(10, "app");
    std::uint64_t now = 1000;
    for (int i = 0; i < 200; ++i) {
      sample.enter(1, now);
      for (std::uint64_t n = 0; n < calls.at(side); ++n, now += 4 + kCost) sample.call(2, now, now + 4 + kCost / 2);
      sample.exit(1, now += 2000 + longer * side + random() % 9);
      now += 100;
    }
    traces.push_back(std::make_unique<reader::Trace>(sample.open("run " + std::to_string(side))));
    builders.push_back(std::make_unique<ReportBuilder>(*traces.back()));
    const reader::Thread& thread = traces.back()->processes()[0].threads[0];
    reader::Calls rows = reader::rebuild_calls(*traces.back(), thread);
    const reader::CallCost cost{kCost * format::kCallCostUnit, kCost / 2 * format::kCallCostUnit, 0};
    if (without_cost) take_cost_out(rows, cost, {});
    builders.back()->add(thread, rows);
    reports.push_back(builders.back()->finish());
  }
  auto functions = compare_two({reports[0], *builders[0], *traces[0]}, {reports[1], *builders[1], *traces[1]}, {});
  std::erase_if(functions, [](const FunctionDiff& f) { return f.name != "f"; });
  return functions;
}

TEST(Diff, WhatTracingMayHaveTakenIsNoChange) {
  // 90 calls more take 360 ns of 2100, and tracing 1800 more.
  EXPECT_TRUE(diff_of_callers({10, 100}, 0, false)[0].changed);
  const FunctionDiff more_calls = diff_of_callers({10, 40}, 0, true)[0];
  EXPECT_FALSE(more_calls.changed);
  EXPECT_NEAR(more_calls.side[1].middle_ns - more_calls.side[0].middle_ns, 30 * 4, 2);
  EXPECT_NEAR(more_calls.side[1].call_cost_ns() - more_calls.side[0].call_cost_ns(), 30 * 20, 2);
  EXPECT_FALSE(diff_of_callers({40, 10}, 0, true)[0].changed);
  // What is longer by more than that is told, and all of it where as many calls are made.
  const FunctionDiff longer = diff_of_callers({10, 40}, 6000, true)[0];
  EXPECT_TRUE(longer.changed);
  EXPECT_NEAR(longer.change(), (30 * 4 + 6000) / 2040.0, 0.02);
  EXPECT_TRUE(diff_of_callers({40, 40}, 3000, true)[0].changed);
  EXPECT_FALSE(diff_of_callers({40, 40}, 0, true)[0].changed);
}

TEST(Diff, MeanTestIsTheOneOfTheBooks) {
  const auto two = [](double difference, std::size_t values) {  // of variance 2 each
    std::vector<double> a(values, 0), b(values, difference);
    for (std::size_t i = 0; i < values; ++i)
      for (auto* side : {&a, &b})
        (*side)[i] += (i % 2 == 0 ? 1 : -1) * std::sqrt(2 * (1 - 1.0 / static_cast<double>(values)));
    return mean_test(a, b, 0, 0);
  };
  // Tables of Student's t, two-sided: 4.3027 for 5% at 2 degrees of freedom, 2.4469 at 6, 9.9248 for 1% at 2.
  EXPECT_NEAR(two(4.3027 * std::sqrt(2.0), 2), 0.05, 1e-5);
  EXPECT_NEAR(two(9.9248 * std::sqrt(2.0), 2), 0.01, 1e-5);
  EXPECT_NEAR(two(2.4469 * 1.0, 4), 0.05, 1e-5);
  EXPECT_EQ(two(0, 2), 1);
  // One value each says nothing of how much they vary: 2.2281 for 5% at 10, 31.599 for 0.1% at 2.
  const std::vector<double> zero = {0}, ten = {2.2281 * std::sqrt(2 * 9.0)}, far = {31.599};
  EXPECT_NEAR(mean_test(zero, ten, 9, 10), 0.05, 1e-5);
  EXPECT_NEAR(mean_test(zero, far, 0.5, 2), 0.001, 1e-6);
  // A part of the difference that is no difference.
  const std::vector<double> farther = {far[0] + 5};
  EXPECT_NEAR(mean_test(zero, farther, 0.5, 2, 5), 0.001, 1e-6);
  EXPECT_EQ(mean_test(zero, far, 0.5, 2, 40), 1);
}

// A program may be called otherwise after it was built anew; a library may not.
TEST(Diff, TheProgramIsTheSameWhateverItIsCalled) {
  const auto in_both = [](const std::string& module_a, const std::string& module_b) {
    std::size_t count = 0;
    std::vector<std::unique_ptr<reader::Trace>> traces;
    std::vector<std::unique_ptr<ReportBuilder>> builders;
    std::vector<Report> reports;
    for (const std::string& module : {module_a, module_b}) {
      test::SampleTrace sample;
      sample.process(10, module == module_a ? "old" : "new", {"f", "g"}).thread(10, "app");
      sample.module().path = module;
      sample.call(1, 1000, 1010).call(2, 1020, 1030);
      traces.push_back(std::make_unique<reader::Trace>(sample.open(module + ".karst")));
      builders.push_back(std::make_unique<ReportBuilder>(*traces.back(), nullptr));
      const reader::Thread& thread = traces.back()->processes()[0].threads[0];
      builders.back()->add(thread, reader::rebuild_calls(*traces.back(), thread));
      reports.push_back(builders.back()->finish());
    }
    for (const FunctionDiff& f :
         compare_two({reports[0], *builders[0], *traces[0]}, {reports[1], *builders[1], *traces[1]}, {}))
      count += f.in_both() ? 1 : 0;
    return count;
  };
  EXPECT_EQ(in_both("/bin/old", "/bin/new"), 2U);
  EXPECT_EQ(in_both("/lib/old.so", "/lib/new.so"), 0U);
  EXPECT_EQ(in_both("/lib/a.so", "/opt/a.so"), 2U);
}

TEST(Diff, OfWhatIsOnOneSideAloneOrTooSeldomNothingIsSaid) {
  const Traced many(1, 20, 0), few(2, kLeastTested - 1, 1.0);
  for (const FunctionDiff& f : compare_two(many.measured(), few.measured(), {})) {
    EXPECT_FALSE(f.tested);
    EXPECT_FALSE(f.changed);
  }
  const Report nothing;
  for (const FunctionDiff& f : compare_two(many.measured(), {nothing, *few.builder, *few.trace}, {}))
    EXPECT_TRUE(!f.in_both() && !f.changed);
}

// Whether sample+0x10, a named function and an unknown id are in both traces.
std::array<bool, 3> in_both(const std::string& second_name, const std::string& second_build) {
  struct One {
    test::SampleTrace sample;
    std::unique_ptr<reader::Trace> trace;
    std::unique_ptr<ReportBuilder> builder;
    Report report;
    One(const std::string& name, const std::string& build) {
      sample.process(10, "app", {"sample+0x10", "named"}).thread(10, "app");
      sample.module().build_id = build;
      sample.call(1, 1000, 1010).call(2, 1020, 1030).call(9, 1040, 1050);
      trace = std::make_unique<reader::Trace>(sample.open(name));
      builder = std::make_unique<ReportBuilder>(*trace);
      builder->add(trace->processes()[0].threads[0], reader::rebuild_calls(*trace, trace->processes()[0].threads[0]));
      report = builder->finish();
    }
  };
  const One a("a.karst", "build 1"), b(second_name, second_build);
  std::array<bool, 3> both{};
  for (const FunctionDiff& f : compare_two({a.report, *a.builder, *a.trace}, {b.report, *b.builder, *b.trace}, {}))
    both.at(f.name == "sample+0x10" ? 0 : f.name == "named" ? 1 : 2) |= f.in_both();
  return both;
}

TEST(Diff, AFunctionWithoutANameIsTheSameInOneBuildAlone) {
  using Both = std::array<bool, 3>;
  EXPECT_EQ(in_both("a.karst", "build 1"), (Both{true, true, true}));  // two parts of one trace
  EXPECT_EQ(in_both("b.karst", "build 1"), (Both{true, true, false}));
  EXPECT_EQ(in_both("b.karst", "build 2"), (Both{false, true, false}));
  EXPECT_EQ(in_both("b.karst", ""), (Both{false, true, false}));
}

TEST(Diff, RankTestIsTheOneOfTheBooks) {
  // Counted by pairs: U is the number of pairs with the first greater, equals by half.
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint64_t> a(5 + random() % 20), b(5 + random() % 20);
    for (auto* side : {&a, &b})
      for (std::uint64_t& value : *side) value = random() % 12;  // with many equals
    double u = 0, ties = 0;
    std::vector<std::uint64_t> all(a);
    all.insert(all.end(), b.begin(), b.end());
    for (const std::uint64_t x : a)
      for (const std::uint64_t y : b) u += x > y ? 1 : x == y ? 0.5 : 0;
    for (std::uint64_t value = 0; value < 12; ++value) {
      const auto equal = static_cast<double>(std::count(all.begin(), all.end(), value));
      ties += equal * equal * equal - equal;
    }
    const auto n1 = static_cast<double>(a.size()), n2 = static_cast<double>(b.size()), n = n1 + n2;
    const double deviation = std::sqrt(n1 * n2 / 12 * (n + 1 - ties / n / (n - 1)));
    const double z = std::max(0.0, std::abs(u - n1 * n2 / 2) - 0.5) / deviation;
    EXPECT_NEAR(rank_test(a, b), std::erfc(z / std::sqrt(2.0)), 1e-9);
  }
  // Many, short and long ones: sorted by counting.
  std::vector<std::uint64_t> many(200'000), others(70'000);
  for (auto* side : {&many, &others})
    for (std::uint64_t& value : *side) value = random() % 16 == 0 ? random() : random() % 70'000;
  std::vector<std::uint64_t> sorted(many), others_sorted(others);
  rank_test(many, others);
  std::sort(sorted.begin(), sorted.end());
  std::sort(others_sorted.begin(), others_sorted.end());
  EXPECT_EQ(many, sorted);
  EXPECT_EQ(others, others_sorted);
  std::vector<std::uint64_t> same(50, 3), also(60, 3);
  EXPECT_EQ(rank_test(same, also), 1);
}

TEST(Diff, ManyTestsAreAdjusted) {
  std::vector<double> chances = {0.01, 0.04, 0.03, 0.005};
  adjust_for_many(chances);
  const double expected[] = {0.02, 0.04, 0.04, 0.02};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(chances[i], expected[i], 1e-12);
}

}  // namespace
}  // namespace karst::analysis
