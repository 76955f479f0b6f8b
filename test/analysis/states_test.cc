// Thread states beside calls: sums against naive ones, waits with their reasons, wakers in their calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "analysis/report.h"
#include "analysis/waits.h"
#include "test/analysis/sample_states.h"
#include "test/analysis/sample_trace.h"
#include "test/engine/random_trace.h"
#include "words/wait_words.h"

namespace karst {
namespace {

using reader::StateTimes;
using reader::ThreadState;
using test::SampleStates;
using test::SampleTrace;

constexpr std::uint32_t kFutex = 202;

// Threads 10 (main) and 11 (worker): the worker waits in take() until main's put() wakes it, is kept off its CPU by a
// stranger, and is put off it once more while it runs.
void fill_hand_over(SampleTrace& sample) {
  sample.process(10, "app", {"main", "put(int)", "take()"});
  sample.thread(10, "main").enter(1, 2'000).call(2, 900'000, 1'000'100).exit(1, 3'000'000);
  sample.thread(11, "worker").call(3, 100'000, 2'000'000);
  SampleStates states(1'000, 3'000'000);
  states.task(10, 10, "main").task(11, 10, "worker").task(99, 98, "stranger", false);
  states.go(1'500, 0, 0, 'R', 10).go(90'000, 1, 0, 'R', 11);
  states.syscall(199'000, 1, 11, kFutex).go(200'000, 1, 11, 'S', 99);
  states.wake(1'000'000, 0, 11, 10).go(1'300'000, 1, 99, 'S', 11);
  states.go(1'500'000, 1, 11, 'R', 99).go(1'600'000, 1, 99, 'R', 11).go(2'500'000, 1, 11, 'S', 0);
  sample.states(states.log());
}

std::string words_of(const reader::Trace& trace, const analysis::Wait& wait) {
  return words::wait_words(wait, trace.states(),
                           {[&](const reader::Thread& of, std::uint32_t id) {
                              return trace.function(trace.processes()[of.process], id).name;
                            },
                            [&](std::uint64_t ticks) { return std::to_string(ticks) + " ticks"; }});
}

TEST(Waits, SayWhyAndWhoEndedThem) {
  SampleTrace sample;
  fill_hand_over(sample);
  const reader::Trace trace = sample.open();
  const analysis::Waits waits(trace, 50'000);
  const auto& of_worker = waits.of(trace.processes()[0].threads[1]);
  ASSERT_EQ(of_worker.size(), 3U);
  EXPECT_EQ(of_worker[0].begin, 200'000U);
  EXPECT_EQ(of_worker[0].end, 1'000'000U);
  EXPECT_EQ(of_worker[0].length(), 1'100'000U);
  EXPECT_EQ(words_of(trace, of_worker[0]),
            "blocked in futex, woken by 10 main in put(int); the last 300000 ticks waiting for a CPU");
  EXPECT_EQ(of_worker[1].state, ThreadState::kPreempted);
  EXPECT_EQ(words_of(trace, of_worker[1]), "runnable, kept off CPU 1 by 99 stranger");
  EXPECT_EQ(of_worker[2].begin, 2'500'000U);
  EXPECT_EQ(analysis::Waits(trace, 200'000).of(trace.processes()[0].threads[1]).size(), 2U);
}

TEST(Waits, ShorterOnesAreLeftOutByTheirWholeLength) {
  SampleTrace sample;
  fill_hand_over(sample);
  const reader::Trace trace = sample.open();
  EXPECT_EQ(analysis::Waits(trace, 1'100'000).of(trace.processes()[0].threads[1]).size(), 1U);
  EXPECT_EQ(analysis::Waits(trace, 1'100'001).of(trace.processes()[0].threads[1]).size(), 0U);
}

// The worker comes to CPU 1 unrecorded, at some time behind the waking.
TEST(Waits, WhatIsNotKnownIsToldToo) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "put(int)", "take()"});
  sample.thread(10, "main").enter(1, 2'000).call(2, 900'000, 1'000'100).exit(1, 3'000'000);
  sample.thread(11, "worker").call(3, 100'000, 2'000'000);
  SampleStates states(1'000, 3'000'000);
  states.task(10, 10, "main").task(11, 10, "worker");
  states.go(1'500, 0, 0, 'R', 10).go(90'000, 1, 0, 'R', 11).go(200'000, 1, 11, 'S', 0).wake(1'000'000, 0, 11, 10);
  states.go(1'700'000, 1, 11, 'S', 0);
  sample.states(states.log());
  const reader::Trace trace = sample.open();
  const analysis::Waits waits(trace, 50'000);
  const auto& of_worker = waits.of(trace.processes()[0].threads[1]);
  ASSERT_EQ(of_worker.size(), 3U);
  EXPECT_EQ(words_of(trace, of_worker[0]), "blocked in sleep, woken by 10 main in put(int)");
  EXPECT_EQ(of_worker[1].begin, 1'000'000U);
  EXPECT_EQ(of_worker[1].end, 1'700'000U);
  EXPECT_EQ(words_of(trace, of_worker[1]), "not known: the system's records are missing here");
}

TEST(Report, TellsTimesApartByState) {
  SampleTrace sample;
  fill_hand_over(sample);
  const reader::Trace trace = sample.open();
  analysis::ReportBuilder builder(trace);
  for (const auto& thread : trace.processes()[0].threads) builder.add(thread, reader::rebuild_calls(trace, thread));
  const analysis::Report report = builder.finish();
  EXPECT_TRUE(report.has_states);
  const auto of = [&](const std::string& name) {
    return *std::find_if(report.functions.begin(), report.functions.end(),
                         [&](const auto& f) { return f.name == name; });
  };
  const auto take = of("take()");
  EXPECT_EQ(take.total_states.cpu_ns, 100'000U + 200'000U + 400'000U);
  EXPECT_EQ(take.total_states.blocked_ns, 800'000U);
  EXPECT_EQ(take.total_states.runnable_ns, 300'000U + 100'000U);
  EXPECT_EQ(take.total_states.unknown_ns, 0U);
  const auto main = of("main");
  EXPECT_EQ(main.total_states.cpu_ns, main.total_ns);
  EXPECT_EQ(main.self_states.cpu_ns, main.self_ns);
}

TEST(Report, StatesOfRandomTracesAreTheNaiveOnesAndAddUp) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    SampleTrace sample;
    test::fill_random(sample, {.seed = seed, .threads = 3, .calls = 600, .open_ends = seed == 3});
    // Of two of the three threads; they end before the calls do.
    sample.states(test::random_states(seed, 100, {100, 101}, 3'000, 400'000, 2'000));
    const reader::Trace trace = sample.open();
    ASSERT_FALSE(trace.states().empty());
    std::map<std::string, StateTimes> total, self;
    analysis::ReportBuilder builder(trace);
    for (const auto& thread : trace.processes()[0].threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      builder.add(thread, calls);
      const reader::ThreadStates* const states = trace.states().of(100, thread.tid);
      EXPECT_EQ(states != nullptr, thread.tid != 102);
      // State by state, call by call.
      const auto naive = [&](std::uint64_t begin, std::uint64_t end) {
        StateTimes times;
        for (std::size_t i = 0; states != nullptr && i < states->size(); ++i) {
          const std::uint64_t from = std::max(begin, states->begin[i]);
          const std::uint64_t to = std::min(end, states->end_of(i));
          if (to <= from) continue;
          if (states->state[i] == ThreadState::kRunning) times.running += to - from;
          if (states->state[i] == ThreadState::kBlocked) times.blocked += to - from;
          if (states->state[i] == ThreadState::kPreempted || states->state[i] == ThreadState::kWoken)
            times.runnable += to - from;
        }
        times.unknown = end - begin - times.running - times.runnable - times.blocked;
        return times;
      };
      for (std::size_t row = 0; row < calls.size(); ++row) {
        const StateTimes times = naive(calls.begin[row], calls.begin[row] + calls.duration[row]);
        const std::string name = trace.function(trace.processes()[0], calls.function[row]).name;
        self[name] += times;
        bool nested = false;
        for (std::uint32_t up = calls.parent[row]; up != reader::kNoParent; up = calls.parent[up])
          nested = nested || calls.function[up] == calls.function[row];
        if (!nested) total[name] += times;
        if (calls.parent[row] == reader::kNoParent) continue;
        StateTimes& above = self[trace.function(trace.processes()[0], calls.function[calls.parent[row]]).name];
        above = above - times;
      }
    }
    const analysis::Report report = builder.finish();
    ASSERT_EQ(report.functions.size(), total.size());
    std::uint64_t known = 0;
    for (const analysis::FunctionReport& f : report.functions) {
      const auto same = [&](const analysis::StateReport& found, const StateTimes& want, std::uint64_t time) {
        EXPECT_EQ(found.cpu_ns, want.running) << f.name;
        EXPECT_EQ(found.runnable_ns, want.runnable) << f.name;
        EXPECT_EQ(found.blocked_ns, want.blocked) << f.name;
        EXPECT_EQ(found.unknown_ns, want.unknown) << f.name;
        EXPECT_EQ(found.cpu_ns + found.runnable_ns + found.blocked_ns + found.unknown_ns, time) << f.name;
      };
      same(f.total_states, total.at(f.name), f.total_ns);
      same(f.self_states, self.at(f.name), f.self_ns);
      known += f.self_states.cpu_ns;
    }
    EXPECT_GT(known, 0U);
  }
}

TEST(Waits, InnermostCallIsTheNaiveOne) {
  SampleTrace sample;
  test::fill_random(sample, {.seed = 9, .threads = 1, .calls = 400});
  const reader::Trace trace = sample.open();
  const reader::Calls calls = reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
  const std::uint64_t end = calls.begin[0] + calls.duration[0];
  for (std::uint64_t ticks = calls.begin[0] - 2; ticks < end + 100; ticks += 1 + ticks % 7) {
    std::uint32_t want = reader::kNoParent;
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      if (calls.begin[row] <= ticks && ticks < calls.begin[row] + calls.duration[row]) want = row;
    }
    ASSERT_EQ(columns::innermost_at(columns::CallColumns(calls), ticks), want) << ticks;
  }
}

}  // namespace
}  // namespace karst
