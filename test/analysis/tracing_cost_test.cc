// Times without the tracer: what is taken out of each call, and what sums say then.
#include "analysis/tracing_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "analysis/selection.h"
#include "format/values.h"
#include "test/analysis/sample_states.h"
#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using test::SampleStates;
using test::SampleTrace;

constexpr std::uint32_t kUnit = format::kCallCostUnit;

/// main [1000, 2000) calls work [1100, 1400), which calls leaf [1200, 1250), and leaf [1500, 1510). A call costs 20
/// ticks, 5 of them between its events.
SampleTrace sample() {
  SampleTrace sample;
  sample.process(1, "app", {"main", "work", "leaf"}).thread(1, "app");
  sample.enter(1, 1000).enter(2, 1100).call(3, 1200, 1250).exit(2, 1400).call(3, 1500, 1510).exit(1, 2000);
  return sample;
}

reader::Process process_with_cost() {
  reader::Process process;
  process.cost.call = 20 * kUnit;
  process.cost.inside = 5 * kUnit;
  return process;
}

reader::Calls calls_of(const reader::Trace& trace) {
  return reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
}

TEST(TracingCost, IsTheCallsOwnAndThatOfAllWithinIt) {
  SampleTrace values = sample();
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  EXPECT_EQ(calls.time(0), 1000U);
  take_cost_out(calls, process_with_cost().cost, {});
  ASSERT_EQ(calls.size(), 4U);  // main, work, leaf, leaf
  EXPECT_EQ(calls.time(0), 1000U - 5 - 3 * 20);
  EXPECT_EQ(calls.time(1), 300U - 5 - 20);
  EXPECT_EQ(calls.time(2), 50U - 5);
  EXPECT_EQ(calls.time(3), 10U - 5);
  EXPECT_EQ(calls.duration[0], 1000U);  // what was recorded stays
}

TEST(TracingCost, OfACallAsShortAsItsEventsIsMostOfIt) {
  SampleTrace values = sample();
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  reader::Process process = process_with_cost();
  process.cost.off_by = 40 * kUnit;  // so an event among nothing else costs 20
  EXPECT_EQ(process.cost.usual(), 30 * kUnit);
  take_cost_out(calls, process.cost, {});
  EXPECT_EQ(calls.taken[3], 10 * kUnit - 10 * kUnit / 8);  // 10 ticks long
  EXPECT_EQ(calls.taken[2], 5 * kUnit);                    // 50: as ever
  EXPECT_EQ(calls.taken[1], 5 * kUnit + 20 * kUnit);       // not alone, however long
  EXPECT_EQ(calls.taken[0], 5 * kUnit + 15 * kUnit + calls.taken[1] + 15 * kUnit + calls.taken[3]);
}

TEST(TracingCost, FallsWithTheLengthOfACallThatIsAlone) {
  constexpr std::uint64_t kQuarters[] = {1, 7, 14, 7, 1, 1};  // of a tick: of calls of 0, 2, 4 and more ticks
  SampleTrace values;
  values.process(1, "app", {"main", "leaf"}).thread(1, "app").enter(1, 1000);
  for (std::uint64_t i = 0; i < 6; ++i) values.call(2, 1100 + 100 * i, 1100 + 100 * i + 2 * i);
  values.exit(1, 2000);
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  reader::Process process;
  process.cost.call = kUnit;
  process.cost.inside = kUnit / 4;
  process.cost.off_by = 8 * kUnit;  // 4 an event
  take_cost_out(calls, process.cost, {});
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(calls.taken[1 + i], kQuarters[i] * kUnit / 4) << i;
}

std::string timed_end(format::ValuesTime ticks) {
  return std::string(reinterpret_cast<const char*>(&ticks), sizeof ticks) + static_cast<char>(format::kValuesEndTimed);
}

// What it took to note work()'s argument lies in main(), what it took to note its result in itself.
TEST(TracingCost, HasWhatItTookToNoteValues) {
  SampleTrace values;
  values.process(1, "app", {"main", "work", "leaf"}).thread(1, "app").enter(1, 1000);
  values.values(format::NoteKind::kArguments, 2, std::string("\1\7") + timed_end(60), 1100);
  values.enter(2, 1100).call(3, 1200, 1250);
  values.values(format::NoteKind::kReturned, 2, std::string("\1\7") + timed_end(33), 1400).exit(2, 1400);
  const std::string untimed = "\1\7" + std::string(1, static_cast<char>(format::kValuesEnd));
  const std::string torn = std::string("\1") + static_cast<char>(format::kValuesEndTimed);
  for (const std::string& bytes : {untimed, torn}) values.values(format::NoteKind::kArguments, 3, bytes, 1450);
  values.call(3, 1500, 1510).exit(1, 2000);
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  take_cost_out(calls, process_with_cost().cost, {});
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_EQ(calls.time(0), 1000U - 5 - 3 * 20 - 60 - 33);
  EXPECT_EQ(calls.time(1), 300U - 5 - 20 - 33);
  EXPECT_EQ(calls.time(2), 50U - 5);
  EXPECT_EQ(calls.time(3), 10U - 5);

  reader::Column<std::uint64_t> taken;
  const reader::Calls recorded = calls_of(trace);
  const auto with_notes =
      without_cost(columns::CallColumns(recorded), process_with_cost().cost, noted_costs(recorded), taken);
  EXPECT_EQ(with_notes.time(0), calls.time(0));
  EXPECT_EQ(with_notes.time(1), calls.time(1));

  ReportBuilder report(trace, nullptr);
  report.add(trace.processes()[0].threads[0], calls);
  std::map<std::string, std::uint64_t> tracing;
  for (const FunctionReport& f : report.finish().functions) tracing[f.name] = f.tracing_ns;
  EXPECT_EQ(tracing["main"], trace.clock().to_ns(20));
  EXPECT_EQ(tracing["work"], trace.clock().to_ns(20 + 60 + 33));
  EXPECT_EQ(tracing["leaf"], trace.clock().to_ns(2 * 20));
}

std::string overhead(format::Overhead why, std::uint16_t ticks) {
  const std::uint64_t note = format::overhead_note(why, ticks);
  return std::string(reinterpret_cast<const char*>(&note), format::note_bytes_of(note));
}

// Whatever kept the thread for long lies in the call that it was in.
TEST(TracingCost, HasWhatTracingNotedOfItself) {
  SampleTrace values;
  values.process(1, "app", {"main", "open", "leaf"}).thread(1, "app").enter(1, 1000).enter(2, 1100);
  values.values(format::NoteKind::kOverhead, 0, overhead(format::Overhead::kLibrary, 600), 1800);
  values.exit(2, 1900);
  values.values(format::NoteKind::kOverhead, 0, overhead(format::Overhead::kMemory, 300), 2300);
  values.values(format::NoteKind::kOverhead, 0, "", 2310);
  values.call(3, 2350, 2400).exit(1, 3000);
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  take_cost_out(calls, process_with_cost().cost, {});
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls.time(0), 2000U - 5 - 2 * 20 - 600 - 300);
  EXPECT_EQ(calls.time(1), 800U - 5 - 600);
  EXPECT_EQ(calls.time(2), 50U - 5);
  ReportBuilder report(trace, nullptr);
  report.add(trace.processes()[0].threads[0], calls);
  std::map<std::string, std::uint64_t> tracing;
  for (const FunctionReport& f : report.finish().functions) tracing[f.name] = f.tracing_ns;
  EXPECT_EQ(tracing["main"], trace.clock().to_ns(20 + 300));
  EXPECT_EQ(tracing["open"], trace.clock().to_ns(20 + 600));
}

// While memory was made for its events, a thread waited for nothing of the program's.
TEST(TracingCost, WhoWaitedForMemoryOfTracingRan) {
  for (const bool is_noted : {true, false}) {
    SampleTrace sample;
    sample.process(1, "app", {"main"}).thread(1, "app");
    sample.values(format::NoteKind::kOverhead, 0, std::string(12, '\1'), 59'000);  // too long to be one
    if (is_noted) sample.values(format::NoteKind::kOverhead, 0, overhead(format::Overhead::kMemory, 50'000), 60'000);
    sample.enter(1, 61'000).exit(1, 90'000);
    SampleStates states(1'000, 200'000);
    states.task(1, 1, "app").go(1'500, 0, 0, 'R', 1).go(20'000, 0, 1, 'D', 0);
    states.wake(50'000, 1, 1, 0).go(51'000, 0, 0, 'R', 1).go(70'000, 0, 1, 'S', 0);
    sample.states(states.log());
    const reader::Trace trace = sample.open();
    const reader::StateTimes times = trace.states().of(1, 1)->between(10'000, 70'000);
    EXPECT_EQ(times.blocked, is_noted ? 0U : 30'000U);
    EXPECT_EQ(times.running, is_noted ? 60'000U : 29'000U);
    EXPECT_EQ(trace.states().of(1, 1)->between(70'000, 80'000).blocked, 10'000U);
  }
}

// A stop that began before the range or the kept history, and one that no clock can have seen.
TEST(TracingCost, TakesNoMoreOutOfACallThanIsKnownOfIt) {
  SampleTrace values;
  values.process(1, "app", {"main", "open"}).thread(1, "app").enter(1, 1000).enter(2, 1100);
  values.values(format::NoteKind::kOverhead, 0, overhead(format::Overhead::kLibrary, 5000), 1800);
  values.values(format::NoteKind::kOverhead, 0, std::string(8, '\xff'), 1810);
  values.exit(2, 1900).exit(1, 3000);
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  const std::uint64_t within = 700 + 710;
  take_cost_out(calls, process_with_cost().cost, {});
  EXPECT_EQ(calls.taken[1], (within + 5) * kUnit);
  calls = calls_of(trace);
  take_cost_out(calls, process_with_cost().cost, columns::TickRange{1750, 2000});
  EXPECT_EQ(calls.taken[1], (50 + 60 + 5) * kUnit);
}

// Of what is outside of a range nothing is taken.
TEST(TracingCost, HasNotWhatItTookToNoteValuesOutsideOfARange) {
  SampleTrace values;
  values.process(1, "app", {"main", "work"}).thread(1, "app").enter(1, 1000);
  values.values(format::NoteKind::kArguments, 2, timed_end(60), 1100).call(2, 1100, 1200);
  values.values(format::NoteKind::kArguments, 2, timed_end(70), 1500).call(2, 1500, 1600).exit(1, 2000);
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  take_cost_out(calls, process_with_cost().cost, columns::TickRange{1300, 2000});
  EXPECT_EQ(calls.taken[0], (5 + 20 + 70) * kUnit);
}

// A question's rows alone, against the whole thread with the same range.
TEST(TracingCost, OfThoseInARangeIsThatOfTheWholeThread) {
  std::mt19937 random(7);
  const auto below = [&random](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int round = 0; round < 50; ++round) {
    SampleTrace values;
    values.process(1, "app", {"a", "b", "c"}).thread(1, "app");
    std::vector<std::uint32_t> open;
    std::uint64_t now = 1000;
    for (int i = 0; i < 300; ++i, now += below(40)) {
      const std::uint32_t function = 1 + below(3);
      if (below(9) == 0) values.values(format::NoteKind::kArguments, function, timed_end(60), now);
      if (!open.empty() && below(2) == 0) {
        values.exit(open.back(), now);
        open.pop_back();
      } else {
        values.enter(function, now);
        open.push_back(function);
      }
    }
    for (; !open.empty(); open.pop_back(), now += 10) values.exit(open.back(), now);
    const reader::Trace trace = values.open();
    const reader::Calls recorded = calls_of(trace);
    const columns::CallColumns columns(recorded);
    const reader::Process process = process_with_cost();
    const std::uint64_t begin = 1000 + below(static_cast<std::uint32_t>(now - 1000));
    const columns::TickRange range{begin, begin + 1 + below(2000)};
    reader::Calls whole = recorded;
    take_cost_out(whole, process.cost, range);
    const columns::RowRange rows = columns::rows_in(columns, range);
    reader::Column<std::uint64_t> taken;
    std::vector<columns::WholeCost> beyond;
    const columns::CallColumns some = without_cost(columns, rows, process.cost, noted_costs(recorded), taken, beyond);
    std::vector<std::uint32_t> longer;
    for (std::uint32_t row = 0; row < columns.size(); ++row) {
      if (!rows.has(row) || !rows.counts(columns, row)) continue;
      EXPECT_EQ(some.cost(row), whole.cost(row)) << row;
      if (columns.begin[row] < range.begin || columns.end(row) > range.end) longer.push_back(row);
    }
    // What a longer call cost in all is that of all within it, values aside.
    reader::Column<std::uint64_t> all;
    const columns::CallColumns complete = without_cost(columns, process.cost, {}, all);
    std::vector<std::uint32_t> told;
    for (const columns::WholeCost& of : beyond) {
      if (rows.counts(columns, of.row)) told.push_back(of.row);
      EXPECT_GE(of.ticks, complete.cost(of.row));
      EXPECT_LE(of.ticks, std::max(complete.cost(of.row), some.cost(of.row)));
    }
    EXPECT_EQ(told, longer);
    const std::vector<NotedCost> noted = noted_costs(recorded);
    const columns::CallColumns with_values = without_cost(columns, process.cost, noted, all);
    for (std::uint32_t row = 0; row < columns.size(); ++row)
      EXPECT_EQ(cost_of_call(columns, row, process.cost, noted),
                std::min(with_values.cost(row), columns.duration[row]));
  }
}

TEST(TracingCost, OfAProcessThatDoesNotKnowItIsNothing) {
  SampleTrace values = sample();
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  take_cost_out(calls, reader::CallCost{}, {});
  for (std::size_t row = 0; row < calls.size(); ++row) EXPECT_EQ(calls.time(row), calls.duration[row]);
}

TEST(TracingCost, IsTheSameInTracesThatAreCompared) {
  // A trace of processes that measured so much, by a clock of so many ticks a second.
  const auto trace_of = [](const std::vector<std::uint32_t>& costs, std::uint64_t ticks_per_second) {
    SampleTrace trace;
    std::uint32_t pid = 1;
    for (const std::uint32_t cost : costs) {
      trace.process(pid, "app", {"f"}).costs(cost, cost / 4).thread(pid, "app").call(1, 1000, 1100);
      ++pid;
    }
    return trace.ticks_per_second(ticks_per_second).open();
  };
  const auto compared = [](const reader::Trace& a, const reader::Trace& b) {
    const std::array traces = {&a, &b};
    return cost_to_compare(traces);
  };
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const reader::Trace a = trace_of({1000, 1200}, kSecond), b = trace_of({1700}, kSecond + 1000);
  const auto mean = compared(a, b);
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->call, 1300U);
  EXPECT_EQ(mean->inside, (250U + 300 + 425) / 3);
  EXPECT_FALSE(compared(a, trace_of({1700}, 2 * kSecond)));
  const auto unknown = compared(a, trace_of({0, 1700}, kSecond));
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->call, 0U);
}

TEST(TracingCost, NoTimeIsBelowZero) {
  SampleTrace values = sample();
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  reader::Process process = process_with_cost();
  process.cost.call = process.cost.inside = 4'000'000'000;
  take_cost_out(calls, process.cost, {});
  for (std::size_t row = 0; row < calls.size(); ++row) EXPECT_EQ(calls.time(row), 0U);
}

TEST(TracingCost, OfCallsOutsideOfARangeDoesNotCount) {
  SampleTrace values = sample();
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  CallFilter filter;
  const std::uint64_t origin = calls.begin[0] - 1000;
  filter.range = columns::TickRange{origin + 1300, origin + 1800};
  take_cost_out(calls, process_with_cost().cost, filter.range);
  filter_calls(calls, 0, filter);
  ASSERT_EQ(calls.size(), 3U);  // main and work, cut, and the second leaf
  EXPECT_EQ(calls.time(0), 500U - 5 - 2 * 20);
  EXPECT_EQ(calls.time(1), 100U - 5);
  EXPECT_EQ(calls.time(2), 10U - 5);
}

TEST(TracingCost, CallsTooShortAreThoseWithoutIt) {
  SampleTrace values = sample();
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  take_cost_out(calls, process_with_cost().cost, {});
  CallFilter filter;
  filter.min_ticks = 46;  // the longer leaf takes 50 with the tracer, 45 without
  filter_calls(calls, 0, filter);
  EXPECT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls.time(1), 300U - 5 - 20);
}

TEST(TracingCost, ReportsAddUpWithoutIt) {
  SampleTrace values = sample();
  const reader::Trace trace = values.open();
  reader::Calls calls = calls_of(trace);
  take_cost_out(calls, process_with_cost().cost, {});
  ReportBuilder builder(trace);
  builder.add(trace.processes()[0].threads[0], calls);
  const Report report = builder.finish();
  std::uint64_t self = 0, self_cost = 0, tracing = 0;
  for (const FunctionReport& f : report.functions) {
    self += f.self_ns;
    self_cost += f.self_cost_ns;
    tracing += f.tracing_ns;
    if (f.name == "main") {
      EXPECT_EQ(f.total_ns, 935U);
      EXPECT_EQ(f.self_ns, 935U - 275 - 5);
      EXPECT_EQ(f.total_cost_ns, 65U);
      EXPECT_EQ(f.self_cost_ns, 5U + 2 * 15);  // its own, and what its two calls cost outside of themselves
    }
    if (f.name == "leaf") {
      EXPECT_EQ(f.total_ns, 50U);
      EXPECT_EQ(f.min_ns, 5U);
      EXPECT_EQ(f.max_ns, 45U);
      EXPECT_EQ(f.mean_ns, 25U);
      EXPECT_EQ(f.tracing_ns, 40U);
    }
  }
  EXPECT_EQ(self, 935U);
  EXPECT_EQ(self + self_cost, 1000U);
  EXPECT_EQ(tracing, 80U);
}

}  // namespace
}  // namespace karst::analysis
