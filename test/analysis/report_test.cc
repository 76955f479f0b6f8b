#include "analysis/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "columns/table.h"
#include "test/analysis/sample_trace.h"
#include "write/synthetic.h"

namespace karst::analysis {
namespace {

using test::SampleTrace;

Report report_of(const reader::Trace& trace, const FunctionSet* functions = nullptr) {
  ReportBuilder builder(trace, functions);
  for (const reader::Process& process : trace.processes()) {
    for (const reader::Thread& thread : process.threads) builder.add(thread, reader::rebuild_calls(trace, thread));
  }
  return builder.finish();
}

const FunctionReport& row(const Report& report, const std::string& name) {
  for (const FunctionReport& f : report.functions) {
    if (f.name == name) return f;
  }
  ADD_FAILURE() << "no row for " << name;
  static const FunctionReport none;
  return none;
}

TEST(Report, SelfIsTotalWithoutTheTracedCalls) {
  SampleTrace sample;
  sample.process(1, "app", {"main", "work"}).thread(1, "app");
  sample.enter(1, 1000).call(2, 1100, 1400).call(2, 1500, 1550).exit(1, 2000);
  const reader::Trace trace = sample.open();
  const Report report = report_of(trace);
  ASSERT_EQ(report.functions.size(), 2U);
  const FunctionReport& main = row(report, "main");
  EXPECT_EQ(main.calls, 1U);
  EXPECT_EQ(main.total_ns, 1000U);
  EXPECT_EQ(main.self_ns, 650U);
  EXPECT_EQ(main.module, "/bin/sample");
  EXPECT_EQ(main.file, "/src/sample.cc");
  EXPECT_EQ(main.line, 10U);
  const FunctionReport& work = row(report, "work");
  EXPECT_EQ(work.calls, 2U);
  EXPECT_EQ(work.total_ns, 350U);
  EXPECT_EQ(work.self_ns, 350U);
  EXPECT_EQ(work.min_ns, 50U);
  EXPECT_EQ(work.mean_ns, 175U);
  EXPECT_EQ(work.p50_ns, 50U);  // nearest rank: the first of two
  EXPECT_EQ(work.p99_ns, 300U);
  EXPECT_EQ(work.max_ns, 300U);
  EXPECT_EQ(report.calls, 3U);
  EXPECT_EQ(report.events, 6U);
  EXPECT_EQ(report.span_ns, 1000U);
}

TEST(Report, RecursionCountsOnceInTotal) {
  SampleTrace sample;
  sample.process(1, "app", {"even", "odd"}).thread(1, "app");
  // even > odd > even: the inner even is inside the outer one
  sample.enter(1, 1000).enter(2, 1010).call(1, 1020, 1030).exit(2, 1040).exit(1, 1100);
  const reader::Trace trace = sample.open();
  const Report report = report_of(trace);
  EXPECT_EQ(row(report, "even").calls, 2U);
  EXPECT_EQ(row(report, "even").total_ns, 100U);
  EXPECT_EQ(row(report, "even").self_ns, 80U);
  EXPECT_EQ(row(report, "odd").total_ns, 30U);
  EXPECT_EQ(row(report, "odd").self_ns, 20U);
}

TEST(Report, SameFunctionInTwoProcessesIsOneRow) {
  SampleTrace sample;
  sample.process(1, "app", {"work"}).thread(1, "app").call(1, 1000, 1010);
  sample.process(2, "app", {"other", "work"}).thread(2, "app").call(2, 2000, 2030).call(1, 2040, 2050);
  sample.function(2).line = 10;  // where the first process has it
  const reader::Trace trace = sample.open();
  const Report report = report_of(trace);
  ASSERT_EQ(report.functions.size(), 2U);
  EXPECT_EQ(row(report, "work").calls, 2U);
  EXPECT_EQ(row(report, "work").total_ns, 40U);
  EXPECT_EQ(row(report, "work").min_ns, 10U);
  EXPECT_EQ(row(report, "work").max_ns, 30U);
}

TEST(Report, FunctionsOfOneNameInTwoPlacesStayApart) {
  SampleTrace sample;
  sample.process(1, "app", {"helper", "helper"}).thread(1, "app").call(1, 1000, 1010).call(2, 1020, 1060);
  const reader::Trace trace = sample.open();
  const Report report = report_of(trace);
  ASSERT_EQ(report.functions.size(), 2U);
  EXPECT_NE(report.functions[0].line, report.functions[1].line);
}

TEST(Report, OpenCallsCountButHaveNoDuration) {
  SampleTrace sample;
  sample.process(1, "app", {"main", "work"}).thread(1, "app");
  sample.enter(1, 1000).call(2, 1010, 1020).enter(2, 1030).call(1, 1040, 1050);  // main and work never return
  const reader::Trace trace = sample.open();
  const Report report = report_of(trace);
  const FunctionReport& work = row(report, "work");
  EXPECT_EQ(work.calls, 2U);
  EXPECT_EQ(work.open_calls, 1U);
  EXPECT_EQ(work.total_ns, 10U + 20U);
  EXPECT_EQ(work.max_ns, 10U);
  EXPECT_EQ(work.mean_ns, 10U);
  const FunctionReport& main = row(report, "main");
  EXPECT_EQ(main.open_calls, 1U);
  EXPECT_EQ(main.total_ns, 50U);
  EXPECT_EQ(main.max_ns, 10U);
}

TEST(Report, UnknownIdsHaveRowsOfTheirOwnAsFarAsThereAreEvents) {
  SampleTrace sample;
  auto& thread = sample.process(1, "app", {"main"}).thread(1, "app");
  thread.call(40, 1000, 1010).call(4'000'000, 1020, 1030).call(4'000'001, 1040, 1050).call(1, 1060, 1061);
  const reader::Trace trace = sample.open();
  const Report report = report_of(trace);
  ASSERT_EQ(report.functions.size(), 3U);
  EXPECT_EQ(row(report, "function#40").calls, 1U);
  EXPECT_EQ(row(report, "functions without a record").calls, 2U);
  EXPECT_EQ(report.unknown_ids, 6U);
}

TEST(Report, FilterLeavesTimesAsTheyAre) {
  SampleTrace sample;
  sample.process(1, "app", {"main", "work"}).thread(1, "app");
  sample.enter(1, 1000).call(2, 1100, 1400).exit(1, 2000);
  const reader::Trace trace = sample.open();
  const FunctionSet only_main(trace, [](std::string_view name) { return name == "main"; });
  const Report report = report_of(trace, &only_main);
  ASSERT_EQ(report.functions.size(), 1U);
  EXPECT_EQ(report.functions[0].self_ns, 700U);
  EXPECT_EQ(report.functions[0].p50_ns, 1000U);
}

// Against sums and sorted lists made the slow way, with a plain walk up the callers for recursion.
TEST(Report, AgreesWithASlowCountOfRandomTraces) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::vector<std::byte> bytes;
    auto writer = writing::TraceWriter::to_memory(bytes);
    writing::SyntheticTrace wanted;
    wanted.events = 6000;
    wanted.threads = 3;
    wanted.functions = 12;
    wanted.shape = writing::SyntheticShape::kRandom;
    wanted.block_events = 100;
    wanted.dropped_blocks = seed % 3;
    wanted.seed = seed;
    writing::add_synthetic(writer, wanted);
    ASSERT_TRUE(writer.finish());
    auto trace = reader::Trace::open_memory(bytes, "random.karst");
    ASSERT_TRUE(trace);

    struct Slow {
      std::uint64_t calls = 0, open = 0;
      std::int64_t total = 0, self = 0;
      std::vector<std::uint64_t> durations;
    };
    std::map<std::string, Slow> slow;
    const reader::Process& process = trace->processes().at(0);
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(*trace, thread);
      auto name_of = [&](std::uint32_t at) { return trace->function(process, calls.function[at]).name; };
      for (std::uint32_t i = 0; i < calls.size(); ++i) {
        Slow& f = slow[name_of(i)];
        const auto duration = static_cast<std::int64_t>(calls.duration[i]);
        ++f.calls;
        f.self += duration;
        bool outermost = true;
        for (std::uint32_t up = calls.parent[i]; up != reader::kNoParent; up = calls.parent[up]) {
          outermost = outermost && name_of(up) != name_of(i);
        }
        if (outermost) f.total += duration;
        if (calls.parent[i] != reader::kNoParent) slow[name_of(calls.parent[i])].self -= duration;
        if (calls.marks[i] != 0) {
          ++f.open;
        } else {
          f.durations.push_back(calls.duration[i]);
        }
      }
    }
    const Report report = report_of(*trace);
    ASSERT_EQ(report.functions.size(), slow.size());
    const reader::Clock& clock = trace->clock();
    for (const FunctionReport& f : report.functions) {
      Slow& expected = slow[f.name];
      std::sort(expected.durations.begin(), expected.durations.end());
      EXPECT_EQ(f.calls, expected.calls);
      EXPECT_EQ(f.open_calls, expected.open);
      EXPECT_EQ(f.total_ns, clock.to_ns(static_cast<std::uint64_t>(expected.total)));
      EXPECT_EQ(f.self_ns, clock.to_ns(static_cast<std::uint64_t>(expected.self)));
      ASSERT_FALSE(expected.durations.empty());
      const std::size_t n = expected.durations.size();
      EXPECT_EQ(f.min_ns, clock.to_ns(expected.durations.front()));
      EXPECT_EQ(f.p50_ns, clock.to_ns(expected.durations[(n * 50 + 99) / 100 - 1]));
      EXPECT_EQ(f.p99_ns, clock.to_ns(expected.durations[(n * 99 + 99) / 100 - 1]));
      EXPECT_EQ(f.max_ns, clock.to_ns(expected.durations.back()));
    }
  }
}

TEST(Report, SortsByNameOrByTotalThenName) {
  Report report;
  for (const auto& [name, total] : {std::pair("c", 10), std::pair("a", 10), std::pair("b", 20)}) {
    FunctionReport f;
    f.name = name;
    f.total_ns = static_cast<std::uint64_t>(total);
    report.functions.push_back(f);
  }
  const auto names = [&] {
    std::string text;
    for (const FunctionReport& f : report.functions) text += f.name;
    return text;
  };
  sort_by_total(report);
  EXPECT_EQ(names(), "bac");
  sort_by_name(report);
  EXPECT_EQ(names(), "abc");
}

// run() and loop() are their thread's; serve() is called twice, and rest(), in the second one, is what was slow.
TEST(Report, OneSlowCallIsNotItsThread) {
  SampleTrace sample;
  sample.process(10, "app", {"run()", "loop()", "serve(int)", "rest(int)"});
  sample.thread(10, "app").enter(1, 1'000).enter(2, 1'100).call(3, 1'200, 1'300);
  sample.enter(3, 1'400).call(4, 1'500, 998'000).exit(3, 998'100).exit(2, 999'000).exit(1, 1'000'000);
  const reader::Trace trace = sample.open();
  ReportBuilder builder(trace, nullptr);
  for (const reader::Thread& thread : trace.processes()[0].threads) builder.add(thread, rebuild_calls(trace, thread));
  Report report = builder.finish();
  for (const FunctionReport& f : report.functions)
    EXPECT_EQ(f.runs_its_thread(), f.name == "run()" || f.name == "loop()") << f.name;
}

// Of few values and of many, close together, far apart, and as great as there are.
TEST(Percentiles, AreThoseOfTheSortedValues) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {1, 2, 3, 100, 4096, 4097, 50'000}) {
    for (int shape = 0; shape < 5; ++shape) {
      std::vector<std::uint64_t> values(count);
      for (std::uint64_t& value : values) {
        value = random();
        if (shape == 0) value %= 100;
        if (shape == 1) value = 1'000'000 + value % 3;
        if (shape == 2) value >>= value % 64;
        if (shape == 3) value = value % 100 == 0 ? ~std::uint64_t{0} : 7;
      }
      std::vector<std::uint64_t> sorted = values;
      std::sort(sorted.begin(), sorted.end());
      const auto at = [&](std::size_t percent) { return sorted[(count * percent + 99) / 100 - 1]; };
      const columns::Percentiles found = columns::percentiles(values);
      EXPECT_EQ(found.p50, at(50)) << count << " " << shape;
      EXPECT_EQ(found.p99, at(99)) << count << " " << shape;
      for (const std::uint64_t percent : {1, 10, 90, 100})
        EXPECT_EQ(columns::percentile(values, percent), at(percent)) << count << " " << shape;
    }
  }
}

}  // namespace
}  // namespace karst::analysis
