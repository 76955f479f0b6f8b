// Slow calls against their functions' usual time, on traces written call by call.
#include "analysis/outliers.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "analysis/tracing_cost.h"
#include "test/analysis/sample_states.h"
#include "test/analysis/sample_trace.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using analysis::Outlier;
using analysis::OutlierFinder;
using test::SampleStates;
using test::SampleTrace;

struct Found {
  std::vector<Outlier> outliers;
  std::uint64_t found = 0;
  std::vector<analysis::RareFunction> rare{};
};

Found find(const reader::Trace& trace, std::size_t most = 100, const analysis::FunctionSet* functions = nullptr,
           std::uint64_t min_ticks = 0) {
  OutlierFinder finder(trace, functions, min_ticks, most);
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) finder.learn(thread, rebuild_calls(trace, thread));
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) finder.find(thread, rebuild_calls(trace, thread));
  return {finder.take(), finder.found(), finder.rare(1, 1'000'000)};
}

// serve() calls parse() and put(), which calls lock(); each takes 100 us in all, one waits.
constexpr std::uint32_t kMain = 1, kServe = 2, kParse = 3, kPut = 4, kLock = 5;

void fill_server(SampleTrace& sample, std::uint64_t slow_lock) {
  sample.process(10, "app", {"main", "serve(int)", "parse(char*)", "put(int)", "lock()"});
  sample.thread(10, "main").enter(kMain, 2'000);
  std::uint64_t at = 10'000;
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t lock = i == 12 ? slow_lock : 1'000;
    sample.enter(kServe, at).call(kParse, at + 1'000, at + 51'000).enter(kPut, at + 60'000);
    sample.call(kLock, at + 61'000, at + 61'000 + lock).exit(kPut, at + 90'000 + lock);
    sample.exit(kServe, at + 99'000 + lock);
    at += 200'000 + lock;
  }
  sample.exit(kMain, at);
}

TEST(Outliers, AreRankedAgainstTheirOwnFunctionAndNotListedTwice) {
  SampleTrace sample;
  fill_server(sample, 5'000'000);
  const reader::Trace trace = sample.open();
  const Found all = find(trace);
  ASSERT_EQ(all.outliers.size(), 1U);  // put() and lock() are inside of it, main() has no usual time
  EXPECT_EQ(all.found, 1U);
  const Outlier& outlier = all.outliers[0];
  EXPECT_EQ(outlier.function, kServe);
  EXPECT_EQ(outlier.usual, 100'000U);
  EXPECT_EQ(outlier.call.duration, 5'099'000U);
  EXPECT_EQ(outlier.excess(), 4'999'000U);
}

TEST(Outliers, PathLeadsToWhereTheTimeWent) {
  SampleTrace sample;
  fill_server(sample, 5'000'000);
  const reader::Trace trace = sample.open();
  const reader::Thread& thread = trace.processes()[0].threads[0];
  const reader::Calls calls = rebuild_calls(trace, thread);
  OutlierFinder finder(trace, nullptr, 0, 10);
  finder.learn(thread, calls);
  finder.find(thread, calls);
  EXPECT_EQ(finder.usual_of(0, kLock), 1'000U);
  EXPECT_EQ(finder.usual_of(0, kMain), 0U);
  std::vector<std::uint32_t> path;
  for (const std::uint32_t row : finder.path_below(thread, calls, finder.take()[0].call.row))
    path.push_back(calls.function[row]);
  EXPECT_EQ(path, (std::vector<std::uint32_t>{kPut, kLock}));
}

// Two calls of serve() are slow by lock(), one by parse(), and one by itself.
TEST(Outliers, AreGroupedByWhereTheTimeWent) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "serve(int)", "parse(char*)", "put(int)", "lock()"});
  sample.thread(10, "main");
  std::uint64_t at = 10'000;
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t lock = i == 12 ? 5'000'000 : i == 30 ? 7'000'000 : 1'000;
    const std::uint64_t parse = i == 20 ? 6'000'000 : 50'000;
    const std::uint64_t own = i == 25 ? 900'000 : 0;
    sample.enter(kServe, at).call(kParse, at + 1'000, at + 1'000 + parse).enter(kPut, at + 10'000 + parse);
    sample.call(kLock, at + 11'000 + parse, at + 11'000 + parse + lock).exit(kPut, at + 30'000 + parse + lock);
    at += 40'000 + parse + lock + own;
    sample.exit(kServe, at);
    at += 1'000;
  }
  const reader::Trace trace = sample.open();
  const std::vector<Outlier> outliers = find(trace).outliers;
  ASSERT_EQ(outliers.size(), 4U);
  const auto groups = analysis::group_outliers(outliers, false);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].calls, 2U);
  EXPECT_EQ(groups[0].worst.excess(), 6'999'000U);
  EXPECT_EQ(groups[0].duration, 12'180'000U);
  EXPECT_EQ(groups[1].calls, 1U);
  EXPECT_EQ(groups[1].worst.excess(), 5'950'000U);
  EXPECT_EQ(groups[2].worst.excess(), 900'000U);
  EXPECT_EQ(groups[2].worst.cause, groups[2].worst.number) << "no callee has half of it";
  EXPECT_EQ(analysis::group_outliers(outliers, true).size(), 4U);
}

// Each twentieth call of serve() calls load(), which takes as long as it always does; one parses for longer.
TEST(Outliers, PathLeadsToWhatIsNotCalledUsually) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "serve(int)", "parse(char*)", "load()"}).thread(10, "main");
  std::uint64_t at = 10'000;
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t load = i % 20 == 0 ? 2'000'000 + i : 0;
    const std::uint64_t own = i == 30 ? 1'000'000 : 0;
    sample.enter(kServe, at).call(kParse, at + 100, at + 5'000 + i);
    if (load != 0) sample.call(4, at + 6'000, at + 6'000 + load);
    at += 7'000 + load + own;
    sample.exit(kServe, at);
    at += 1'000;
  }
  const reader::Trace trace = sample.open();
  const auto groups = analysis::group_outliers(find(trace).outliers, false);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].calls, 20U);
  EXPECT_NE(groups[0].worst.cause, groups[0].worst.number);
  EXPECT_EQ(groups[1].calls, 1U);
  EXPECT_EQ(groups[1].worst.cause, groups[1].worst.number) << "parse() took its usual time";
}

TEST(Outliers, NothingStandsOutOfWhatIsAlike) {
  SampleTrace sample;
  fill_server(sample, 1'000);
  const reader::Trace trace = sample.open();
  EXPECT_EQ(find(trace).found, 0U);
}

// Each call is recorded with 40 ticks of tracing's own, more or less, of which 40 are taken out.
TEST(Outliers, AreNoneWhereTheyMayBeTracingsOwn) {
  constexpr std::uint32_t kTicks = format::kCallCostUnit;
  for (const bool raw : {false, true}) {
    SampleTrace sample;
    sample.process(10, "app", {"main", "get()"}).costs(40 * kTicks, 40 * kTicks);
    sample.thread(10, "main").enter(1, 2'000);
    std::uint64_t at = 10'000;
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t own = i == 50 ? 500 : i % 10 == 0 ? 20 : 1;
      sample.call(2, at, at + 40 + own);
      at += 1000;
    }
    sample.exit(1, at);
    const reader::Trace trace = sample.open();
    const reader::Process& process = trace.processes()[0];
    reader::Calls calls = rebuild_calls(trace, process.threads[0]);
    if (!raw) analysis::take_cost_out(calls, process.cost, std::nullopt);
    OutlierFinder finder(trace, nullptr, 0, 100);
    finder.learn(process.threads[0], calls);
    finder.find(process.threads[0], calls);
    EXPECT_EQ(finder.found(), 1U) << "20 ticks in the place of 1 may be the tracer's, 500 are not";
    EXPECT_EQ(finder.take().at(0).call.duration, raw ? 540U : 500U);
  }
}

TEST(Outliers, FunctionsAndLeastDurationsLimitThem) {
  SampleTrace sample;
  fill_server(sample, 5'000'000);
  const reader::Trace trace = sample.open();
  const analysis::FunctionSet locks(trace, [](std::string_view name) { return name.find("lock") == 0; });
  const Found of_locks = find(trace, 100, &locks);
  ASSERT_EQ(of_locks.outliers.size(), 1U);
  EXPECT_EQ(of_locks.outliers[0].function, kLock);
  EXPECT_EQ(find(trace, 100, nullptr, 5'099'000).found, 1U);
  EXPECT_EQ(find(trace, 100, nullptr, 5'099'001).found, 0U);
}

TEST(Outliers, RareCallsAreKnownByWhatTheyTookThemselves) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "load", "read", "usual"});
  sample.thread(10, "main").enter(1, 1'000);
  sample.enter(2, 2'000).call(3, 3'000, 8'000).call(3, 10'000, 30'000).exit(2, 32'000);
  for (std::uint64_t at = 40'000; at < 60'000; at += 1'000) sample.call(4, at, at + 500);
  sample.enter(2, 70'000).exit(2, 71'000).exit(1, 100'000);
  const reader::Trace trace = sample.open();
  const Found all = find(trace);
  EXPECT_EQ(all.found, 0U);
  ASSERT_EQ(all.rare.size(), 2U);  // main is as long as the thread
  EXPECT_EQ(all.rare[0].longest.function, 3U);
  EXPECT_EQ(all.rare[0].longest.excess(), 20'000U);
  EXPECT_EQ(all.rare[0].calls, 2U);
  EXPECT_EQ(all.rare[1].longest.function, 2U);
  EXPECT_EQ(all.rare[1].longest.call.begin, 2'000U);
  EXPECT_EQ(all.rare[1].longest.excess(), 5'000U);
  EXPECT_EQ(all.rare[1].calls, 2U);
  const analysis::FunctionSet loads(trace, [](std::string_view name) { return name == "load"; });
  EXPECT_EQ(find(trace, 100, &loads).rare.size(), 1U);
  EXPECT_EQ(find(trace, 100, nullptr, 30'000).rare.size(), 1U);
}

TEST(Outliers, RecursionCountsByItsOutermostCall) {
  SampleTrace sample;
  sample.process(10, "app", {"fib"}).thread(10, "main");
  std::uint64_t at = 10'000;
  for (int i = 0; i < 12; ++i) {  // each call has ten inside that take a tenth
    sample.enter(1, at);
    for (int inner = 0; inner < 10; ++inner) sample.call(1, at + 100 * inner + 1, at + 100 * inner + 90);
    sample.exit(1, at + 1'000);
    at += 2'000;
  }
  const reader::Trace trace = sample.open();
  EXPECT_EQ(find(trace).found, 0U);
}

TEST(Outliers, KeepTheGreatest) {
  SampleTrace sample;
  sample.process(10, "app", {"f"}).thread(10, "main");
  std::uint64_t at = 10'000;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t duration = i % 4 == 3 ? 1'000 * (i + 1) : 10;
    sample.call(1, at, at + duration);
    at += duration + 1;
  }
  const reader::Trace trace = sample.open();
  const Found three = find(trace, 3);
  EXPECT_EQ(three.found, 10U);
  ASSERT_EQ(three.outliers.size(), 3U);
  EXPECT_EQ(three.outliers[0].call.duration, 40'000U);
  EXPECT_EQ(three.outliers[2].call.duration, 32'000U);
  EXPECT_TRUE(find(trace, 0).outliers.empty());
}

// A slow way to the same: each call against the median of its function's outermost complete calls.
TEST(Outliers, AreThoseOfANaiveSearchOnRandomTraces) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const auto made = test::random_index(
        {.seed = seed, .threads = 3, .calls = seed % 4 == 3 ? 12U : 2'000U, .open_ends = seed % 2 == 0});
    const reader::Trace& trace = made.index->trace();
    const auto outermost = [](const reader::Calls& calls, std::uint32_t row) {
      if (reader::call_is_open(calls.marks[row]) || (calls.marks[row] & reader::kCallInherited) != 0) return false;
      for (std::uint32_t at = calls.parent[row]; at != reader::kNoParent; at = calls.parent[at])
        if (calls.function[at] == calls.function[row]) return false;
      return true;
    };
    std::map<std::uint32_t, std::vector<std::uint64_t>> durations;  // one process: by id
    for (const reader::Thread& thread : trace.processes()[0].threads) {
      const reader::Calls calls = rebuild_calls(trace, thread);
      for (std::uint32_t row = 0; row < calls.size(); ++row)
        if (outermost(calls, row)) durations[calls.function[row]].push_back(calls.duration[row]);
    }
    std::uint64_t expected = 0;
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> rare;  // calls, longest by itself
    for (const reader::Thread& thread : trace.processes()[0].threads) {
      const reader::Calls calls = rebuild_calls(trace, thread);
      std::vector<bool> inside(calls.size());
      for (std::uint32_t row = 0; row < calls.size(); ++row) {
        inside[row] = calls.parent[row] != reader::kNoParent && inside[calls.parent[row]];
        if (inside[row] || !outermost(calls, row)) continue;
        auto& of = durations[calls.function[row]];
        std::sort(of.begin(), of.end());
        if (of.size() < 10 && calls.parent[row] != reader::kNoParent) {
          std::uint64_t own = calls.duration[row];
          for (std::uint32_t r = row + 1; r < calls.size(); ++r)
            if (calls.parent[r] == row) own -= calls.duration[r];
          auto& [count, longest] = rare[calls.function[row]];
          ++count;
          longest = std::max(longest, own);
        }
        if (of.size() < 10 || calls.duration[row] / 3 < std::max<std::uint64_t>(of[(of.size() - 1) / 2], 1)) continue;
        inside[row] = true;
        ++expected;
      }
    }
    const Found found = find(trace, 1'000'000);
    EXPECT_EQ(found.found, expected) << "seed " << seed;
    std::erase_if(rare, [](const auto& function) { return function.second.second == 0; });
    EXPECT_EQ(found.rare.size(), rare.size()) << "seed " << seed;
    for (const analysis::RareFunction& function : found.rare)
      EXPECT_EQ(std::pair(function.calls, function.longest.excess()), rare[function.longest.function]);
  }
}

// main's loop sleeps by usleep() and waits for work in next(), which polls; answer() is slow, but less so.
TEST(Outliers, WhatIdledComesLast) {
  constexpr std::uint32_t kUsleep = 2, kNext = 3, kAnswer = 4, kPause = 5, kOnce = 6;
  SampleTrace sample;
  sample.process(10, "app", {"main", "usleep", "next(Queue&)", "answer()", "pause", "once()"});
  sample.thread(10, "main").enter(1, 1'000);
  SampleStates states(500, 20'000'000);
  states.task(10, 10, "main").go(600, 0, 0, 'R', 10);
  std::uint64_t at = 10'000;
  for (int i = 0; i < 20; ++i) {
    const bool slow = i == 15;
    const std::uint64_t sleep = slow ? 3'000'000 : 1'000, poll = slow ? 2'000'000 : 1'000,
                        answer = slow ? 500'000 : 1'000;
    sample.call(kUsleep, at, at + sleep);
    at += sleep + 100;
    sample.call(kNext, at, at + poll);
    if (slow) {
      states.syscall(at + 10, 0, 10, 7).go(at + 20, 0, 10, 'S', 0);  // poll
      states.wake(at + poll - 30, 0, 10, 0).go(at + poll - 20, 0, 0, 'R', 10);
    }
    at += poll + 100;
    sample.call(kAnswer, at, at + answer);
    at += answer + 100;
  }
  sample.call(kPause, at, at + 1'000'000).call(kOnce, at + 1'000'100, at + 1'200'000).exit(1, at + 1'300'000);
  sample.states(states.log());
  const reader::Trace trace = sample.open();
  const Found found = find(trace);
  ASSERT_EQ(found.outliers.size(), 3U);
  EXPECT_EQ(found.outliers[0].function, kUsleep);
  ASSERT_EQ(found.rare.size(), 1U);  // pause() waits, too
  EXPECT_EQ(found.rare[0].longest.function, kOnce);
  const analysis::Waits waits(trace, 0);
  const auto wait_of = [&](const Outlier& of) {
    return analysis::longest_wait(waits.of(*of.call.thread), of.call.begin, of.call.end);
  };
  auto groups = analysis::group_outliers(found.outliers, false);
  analysis::put_idle_last(groups, trace, wait_of);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].worst.function, kAnswer);
  EXPECT_EQ(groups[1].worst.function, kUsleep);
  EXPECT_EQ(groups[2].worst.function, kNext);
  // Where nothing says what a function waited for, it is as slow as it was.
  analysis::put_idle_last(groups, trace, [](const Outlier&) { return nullptr; });
  EXPECT_EQ(groups[1].worst.function, kNext);
}

// take() on the worker waits for main, which waits for the flusher, which waits for a disk.
TEST(WakerChain, GoesFromWhoWaitedToWhoWasWaitedFor) {
  SampleTrace sample;
  sample.process(10, "app", {"take()", "put()", "flush()", "fsync()"});
  sample.thread(10, "main").enter(2, 100'000).exit(2, 990'000);
  sample.thread(11, "worker").call(1, 50'000, 1'000'000);
  sample.thread(12, "flusher").enter(3, 60'000).call(4, 110'000, 970'000).exit(3, 980'000);
  SampleStates states(1'000, 2'000'000);
  states.task(10, 10, "main").task(11, 10, "worker").task(12, 10, "flusher");
  states.go(2'000, 0, 0, 'R', 10).go(2'000, 1, 0, 'R', 11).go(2'000, 2, 0, 'R', 12);
  states.go(100'000, 1, 11, 'S', 0).go(110'000, 0, 10, 'S', 0).go(120'000, 2, 12, 'D', 0);
  states.wake(960'000, 2, 12, 0, true).go(960'000, 2, 0, 'R', 12);
  states.wake(975'000, 2, 10, 12).go(975'000, 0, 0, 'R', 10);
  states.wake(985'000, 0, 11, 10).go(985'000, 1, 0, 'R', 11);
  sample.states(states.log());
  const reader::Trace trace = sample.open();
  const analysis::Waits waits(trace, 0);
  const auto& of_worker = waits.of(trace.processes()[0].threads[1]);
  const analysis::Wait* longest = analysis::longest_wait(of_worker, 50'000, 1'000'000);
  ASSERT_NE(longest, nullptr);
  EXPECT_EQ(longest->begin, 100'000U);
  reader::Calls calls;
  analysis::LockWaitFinder locks(trace);
  const reader::Thread& worker = trace.processes()[0].threads[1];
  const auto chain =
      analysis::follow_waits(&waits, locks, nullptr, worker, *longest, [&](const reader::Thread& thread) {
        calls = rebuild_calls(trace, thread);
        return columns::CallColumns(calls);
      });
  ASSERT_EQ(chain.size(), 2U);
  EXPECT_EQ(chain[0].thread->name, "main");
  EXPECT_EQ(chain[0].functions, (std::vector<std::uint32_t>{2}));
  EXPECT_TRUE(chain[0].waited);
  EXPECT_EQ(chain[0].wait.begin, 110'000U);
  EXPECT_EQ(chain[1].thread->name, "flusher");
  EXPECT_EQ(chain[1].functions, (std::vector<std::uint32_t>{3, 4}));
  EXPECT_TRUE(chain[1].waited);
  EXPECT_EQ(chain[1].wait.letter, 'D');
  EXPECT_EQ(analysis::longest_wait(of_worker, 0, 90'000), nullptr);
}

// take() on the worker lost its CPU to the hog, which ran sweep() there; before that another one had it for a moment.
TEST(WakerChain, GoesOnToWhoHadTheCpu) {
  SampleTrace sample;
  sample.process(10, "app", {"take()", "spin()", "sweep()"});
  sample.thread(11, "worker").call(1, 50'000, 1'000'000);
  sample.thread(12, "hog").enter(2, 60'000).call(3, 130'000, 880'000).exit(2, 980'000);
  sample.thread(13, "short").call(2, 100'000, 125'000);
  SampleStates states(1'000, 2'000'000);
  states.task(11, 10, "worker").task(12, 10, "hog").task(13, 10, "short").all_cpus();
  states.go(2'000, 1, 0, 'R', 11).go(100'000, 1, 11, 'R', 13).go(120'000, 1, 13, 'S', 12);
  states.go(900'000, 1, 12, 'S', 11).go(1'500'000, 1, 11, 'S', 0);
  sample.states(states.log());
  const reader::Trace trace = sample.open();
  const analysis::Waits waits(trace, 0);
  const reader::Thread& worker = trace.processes()[0].threads[0];
  const analysis::Wait* longest = analysis::longest_wait(waits.of(worker), 50'000, 1'000'000);
  ASSERT_NE(longest, nullptr);
  ASSERT_EQ(longest->state, reader::ThreadState::kPreempted);
  reader::Calls calls;
  const auto calls_of = [&](const reader::Thread& thread) {
    calls = rebuild_calls(trace, thread);
    return columns::CallColumns(calls);
  };
  analysis::LockWaitFinder locks(trace);
  const analysis::KeptOffFinder kept_off(trace, calls_of);
  const auto chain = analysis::follow_waits(&waits, locks, &kept_off, worker, *longest, calls_of);
  ASSERT_EQ(chain.size(), 1U);
  EXPECT_EQ(chain[0].thread->name, "hog");
  EXPECT_EQ(chain[0].functions, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(chain[0].begin, 100'000U);
  EXPECT_EQ(chain[0].end, 900'000U);
  EXPECT_TRUE(analysis::follow_waits(&waits, locks, nullptr, worker, *longest, calls_of).empty());
}

}  // namespace
}  // namespace karst
