// What records of thread states mean: reader/states.h and reader/state_walk.h.
#include "reader/states.h"

#include <gtest/gtest.h>

#include <random>

#include "test/kernel/records.h"

namespace karst::test {
namespace {

using reader::excerpt_states;
using reader::States;
using reader::StateTimes;

TEST(States, FollowAThreadOnAndOffItsCpu) {
  const States states(
      make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 11, kCouldRun), leave_cpu(30, 0, 11, 1),
                leave_cpu(40, 0, 1, 0, 'D'), wake(50, 1, 2, 1), leave_cpu(60, 1, 0, 1), leave_cpu(70, 1, 1, 0, 'X')}));
  EXPECT_EQ(describe(states, 1),
            "unknown 0-10 running@0 10-20 preempted 20-30 by 11 running@0 30-40 blocked(D) 40-50 by 2 woken 50-60 by 2 "
            "running@1 60-70 gone 70-1000");
  EXPECT_EQ(describe(states, 11), "nothing") << "others have no states";
}

TEST(States, NameTheSystemCallAndTheInterrupt) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), enter_syscall(12, 1, 202), leave_cpu(20, 0, 1, 0),
                                wake(30, 0, 0, 1, true), leave_cpu(31, 0, 0, 1)}));
  EXPECT_EQ(describe(states, 1),
            "unknown 0-10 running@0 10-20 blocked(S in futex) 20-30 by interrupt woken 30-31 by interrupt running@0 "
            "31-1000");
  EXPECT_EQ(analysis::syscall_name(0), "read");
  EXPECT_EQ(analysis::syscall_name(231), "exit_group");
  EXPECT_EQ(analysis::syscall_name(450), "set_mempolicy_home_node");
  EXPECT_EQ(analysis::syscall_name(9999), "");
  // libseccomp's own number for a call that x86-64 does not have.
  EXPECT_EQ(analysis::syscall_name(static_cast<std::uint32_t>(-101)), "");
}

// It waited for its own tracing, but for when it was stopped or could run.
TEST(States, WhoSleepsUntilKarstWakesItRuns) {
  reader::StateLog log =
      make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 0, 'S'), wake(30, 1, 12, 1), leave_cpu(35, 0, 0, 1),
                leave_cpu(40, 0, 1, 0, 'T'), wake(50, 1, 12, 1), leave_cpu(55, 0, 0, 1), leave_cpu(60, 0, 1, 0, 'S'),
                wake(70, 1, 13, 1), leave_cpu(75, 0, 0, 1), leave_cpu(80, 0, 1, 12, kCouldRun)});
  for (reader::Task& task : log.tasks) task.tracer = task.tid == 12;
  EXPECT_EQ(describe(States(std::move(log)), 1),
            "unknown 0-10 running@0 10-20 running@0 20-30 running@0 30-35 running@0 35-40 blocked(T) 40-50 by 12 "
            "woken 50-55 by 12 running@0 55-60 blocked(S) 60-70 by 13 woken 70-75 by 13 running@0 75-80 "
            "preempted 80-1000 by 12");
}

// Whatever kept it meanwhile, a waker of the program's included; not what began before, and not what goes on.
TEST(States, WhomTracingKeptRuns) {
  const reader::StateLog log =
      make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 0, 'D'), wake(30, 1, 2, 1), leave_cpu(35, 0, 0, 1),
                leave_cpu(40, 0, 1, 11, kCouldRun), leave_cpu(45, 0, 11, 1), leave_cpu(60, 0, 1, 0, 'D'),
                wake(70, 1, 2, 1), leave_cpu(75, 0, 0, 1), leave_cpu(80, 0, 1, 0, 'S')});
  const auto with = [&](std::vector<reader::TracingTime> times) { return describe(States(log, {{1, times}}), 1); };
  EXPECT_EQ(with({{15, 50}, {65, 76}}),
            "unknown 0-10 running@0 10-20 running@0 20-30 running@0 30-35 running@0 35-40 running@0 40-45 "
            "running@0 45-60 blocked(D) 60-70 by 2 woken 70-75 by 2 running@0 75-80 blocked(S) 80-1000");
  EXPECT_EQ(with({{55, 76}, {79, 90}}),
            "unknown 0-10 running@0 10-20 blocked(D) 20-30 by 2 woken 30-35 by 2 running@0 35-40 preempted 40-45 by 11 "
            "running@0 45-60 running@0 60-70 running@0 70-75 running@0 75-80 blocked(S) 80-1000");
  EXPECT_EQ(with({}), describe(States(log), 1));
}

TEST(States, WithoutWakingsAThreadIsBlockedUntilItRuns) {
  const States states(
      make_log({leave_cpu(10, 0, kNobody, 1, 0), leave_cpu(20, 0, 1, kNobody, 0), leave_cpu(60, 0, kNobody, 1, 0),
                leave_cpu(70, 0, 1, kNobody, kCouldRun), leave_cpu(80, 1, kNobody, 1, 0)}));
  EXPECT_EQ(describe(states, 1),
            "unknown 0-10 running@0 10-20 blocked 20-60 running@0 60-70 preempted 70-80 running@1 80-1000");
}

// The waking thread's CPU may record first.
TEST(States, AWakingBeforeItsSwitchMeansThatTheThreadWasNeverBlocked) {
  const States states(
      make_log({leave_cpu(10, 0, 0, 1), wake(19, 1, 2, 1), leave_cpu(20, 0, 1, 0), leave_cpu(25, 0, 0, 1)}));
  EXPECT_EQ(describe(states, 1), "unknown 0-10 running@0 10-20 woken 20-25 by 2 running@0 25-1000");
}

TEST(States, AWakingThatMetTheThreadAwakeCountsForNothing) {
  const States states(make_log(
      {leave_cpu(10, 0, 0, 1), wake(19, 1, 2, 1), leave_cpu(20, 0, 1, 0), wake(90, 1, 3, 1), leave_cpu(95, 0, 0, 1)}));
  EXPECT_EQ(describe(states, 1),
            "unknown 0-10 running@0 10-20 blocked(S) 20-90 by 3 woken 90-95 by 3 running@0 95-1000");
}

TEST(States, AnOldWakingDoesNotCountForALaterSleep) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), wake(12, 1, 2, 1), leave_cpu(14, 0, 1, 11, kCouldRun),
                                leave_cpu(16, 0, 11, 1), leave_cpu(20, 0, 1, 0), leave_cpu(90, 0, 0, 1)}));
  EXPECT_EQ(describe(states, 1),
            "unknown 0-10 running@0 10-14 preempted 14-16 by 11 running@0 16-20 blocked(S) 20-90 running@0 90-1000");
}

TEST(States, LostRecordsMakeUnknownWhoeverIsNotKnownToRunElsewhere) {
  // 1 runs on the CPU with the gap, 2 on another, 3 sleeps, 4 comes to sleep within, 5 is back before its end.
  const States states(make_log({leave_cpu(10, 0, 0, 1), leave_cpu(10, 1, 0, 2), leave_cpu(11, 2, 3, 0),
                                leave_cpu(12, 2, 0, 4), lost_from(50, 0), leave_cpu(60, 2, 4, 5), lost_to(70, 0, 7),
                                leave_cpu(80, 1, 2, 3), leave_cpu(90, 0, 0, 1)}));
  EXPECT_EQ(describe(states, 1), "unknown 0-10 running@0 10-50 unknown 50-90 running@0 90-1000");
  EXPECT_EQ(describe(states, 2), "unknown 0-10 running@1 10-80 blocked(S) 80-1000");
  EXPECT_EQ(describe(states, 3), "unknown 0-11 blocked(S) 11-50 unknown 50-80 running@1 80-1000");
  EXPECT_EQ(describe(states, 4), "unknown 0-12 running@2 12-60 unknown 60-1000");
  EXPECT_EQ(describe(states, 5), "unknown 0-60 running@2 60-1000");
  ASSERT_EQ(states.gaps().size(), 1U);
  EXPECT_EQ(states.gaps()[0].begin, 50U);
  EXPECT_EQ(states.gaps()[0].end, 70U);
  EXPECT_EQ(states.gaps()[0].lost, 7U);
  EXPECT_EQ(states.cpus()[0].task[1], reader::kNoTask);
}

TEST(States, AGapWithoutEndLastsToTheEnd) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), lost_from(50, 0)}));
  EXPECT_EQ(describe(states, 1), "unknown 0-10 running@0 10-50 unknown 50-1000");
  EXPECT_EQ(states.gaps().at(0).end, 1000U);
}

TEST(States, CpusSayWhoRan) {
  const States states(
      make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 11), leave_cpu(30, 0, 12, 2), leave_cpu(40, 0, 2, 0)}));
  ASSERT_EQ(states.cpus().size(), 1U);
  const reader::CpuLane& lane = states.cpus()[0];
  EXPECT_EQ(lane.begin, (reader::Column<std::uint64_t>{10, 20, 30, 40}));
  EXPECT_EQ(lane.task, (reader::Column<std::uint32_t>{states.task_of(1), states.task_of(11), states.task_of(2),
                                                      reader::kIdleTask}));
  EXPECT_EQ(lane.mixed, (reader::Column<std::uint8_t>{0, 1, 0, 0})) << "11 made room for 12, which nobody recorded";
}

TEST(States, CpusSayWhoWasTheLastOfOthers) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 11), leave_cpu(30, 0, 12, 2),
                                leave_cpu(40, 0, 2, 0), leave_cpu(50, 0, 13, 1), leave_cpu(60, 0, 1, 11)}));
  EXPECT_EQ(states.cpus().at(0).last,
            (reader::Column<std::uint32_t>{reader::kNoTask, states.task_of(12), reader::kNoTask, states.task_of(13),
                                           reader::kNoTask, reader::kNoTask}));
  EXPECT_EQ(states.cpu(0), &states.cpus()[0]);
  EXPECT_EQ(states.cpu(1), nullptr);
}

TEST(States, WhereAllIsRecordedOthersAreKnown) {
  reader::StateLog log = make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 11), leave_cpu(30, 0, 11, 12),
                                   leave_cpu(40, 0, 12, 13), leave_cpu(50, 0, 14, 2)});
  log.source.flags = format::kStatesOthers | format::kStatesCpus;
  EXPECT_EQ(States(log).cpus().at(0).mixed, (reader::Column<std::uint8_t>{0, 0, 0, 1, 0})) << "13 to 14 is missing";
  log.source.flags = format::kStatesCpus;
  EXPECT_EQ(States(log).cpus().at(0).mixed, (reader::Column<std::uint8_t>{0, 1, 1, 1, 0}));
  log.source.flags = format::kStatesOthers | format::kStatesCpus;
  log.records.push_back({25, 0, 0, 0, 0, format::kStateWakesBegin, 0});
  EXPECT_EQ(States(log).cpus().at(0).mixed, (reader::Column<std::uint8_t>{0, 1, 0, 1, 0})) << "from 25 on";
}

TEST(States, AThreadThatEndsIsGoneFromItsCpu) {
  const States states(make_log({leave_cpu(10, 0, 0, 1), {20, 1, 0, 0, 0, format::kStateExit, 0}}));
  EXPECT_EQ(describe(states, 1), "unknown 0-10 running@0 10-20 gone 20-1000");
  EXPECT_EQ(states.cpus().at(0).task, (reader::Column<std::uint32_t>{states.task_of(1), reader::kNoTask}));
}

TEST(States, AThreadOfAnotherNamespaceIsNotTakenForOneOfTheRun) {
  const States states(make_log({leave_cpu(10, 0, 0, 1)}));
  EXPECT_NE(states.of(1, 1), nullptr);
  EXPECT_EQ(states.of(7, 1), nullptr);
}

TEST(States, UnorderedRecordsAreSorted) {
  const States states(make_log({leave_cpu(20, 0, 1, 0), leave_cpu(10, 0, 0, 1)}));
  EXPECT_EQ(describe(states, 1), "unknown 0-10 running@0 10-20 blocked(S) 20-1000");
}

/// A log as it could be, but for its wakings, which are made at random.
reader::StateLog random_log(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return random() % n; };
  reader::StateLog log = make_log({});
  std::uint32_t on_cpu[2] = {0, 0};
  bool lost[2] = {};
  std::uint64_t ticks = 0;
  while ((ticks += below(8)) < 900) {
    const auto cpu = static_cast<std::uint16_t>(below(2));
    const std::uint32_t next = below(3) == 0 ? 0 : below(3) == 0 ? 11 : 1 + below(5);
    if (below(30) == 0) {
      log.records.push_back(lost[cpu] ? lost_to(ticks, cpu, 3) : lost_from(ticks, cpu));
      lost[cpu] = !lost[cpu];
    } else if (below(3) == 0) {
      log.records.push_back(wake(ticks, cpu, 1 + below(5), 1 + below(5), below(2) == 0));
    } else if (below(4) == 0) {
      log.records.push_back(enter_syscall(ticks, 1 + below(5), below(300)));
    } else if (next == 0 || next != on_cpu[1 - cpu]) {
      log.records.push_back(leave_cpu(ticks, cpu, on_cpu[cpu], next, below(2) == 0 ? kCouldRun : 'S'));
      on_cpu[cpu] = next;
    }
  }
  return log;
}

TEST(States, TimesBetweenAreThoseOfTheStatesOneByOne) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const States states(random_log(seed));
    std::mt19937 random(seed);
    for (const reader::ThreadStates& t : states.threads()) {
      std::size_t hint = 0;
      for (std::uint64_t at = 0; at < 1005; at += 1 + random() % 40) {
        EXPECT_EQ(t.before(at, hint), t.between(0, at));
        const std::uint64_t to = at + random() % 200;
        StateTimes expected;
        for (std::uint64_t tick = at; tick < to; ++tick) {
          const std::size_t i = t.at(tick);
          const auto state = i == t.size() ? reader::ThreadState::kUnknown : t.state[i];
          expected.running += state == reader::ThreadState::kRunning ? 1 : 0;
          expected.blocked += state == reader::ThreadState::kBlocked ? 1 : 0;
          const bool runnable = state == reader::ThreadState::kPreempted || state == reader::ThreadState::kWoken;
          expected.runnable += runnable ? 1 : 0;
        }
        expected.unknown = to - at - expected.running - expected.blocked - expected.runnable;
        EXPECT_EQ(t.between(at, to), expected) << seed << ": " << at << " " << to;
      }
    }
  }
}

// A cut says about each moment of it what the whole says.
TEST(Cut, KeepsTheStatesOfItsRangeAndKnowsThemAtItsBegin) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const reader::StateLog log = random_log(seed);
    const States whole(log);
    const std::uint64_t begin = 100 + seed * 7;
    const std::uint64_t end = begin + 200;
    const States part(excerpt_states(log, begin, end));
    EXPECT_EQ(part.source().begin_ticks, begin);
    EXPECT_EQ(part.source().end_ticks, end);
    for (const reader::ThreadStates& t : whole.threads()) {
      const std::uint32_t tid = whole.tasks()[t.task].tid;
      const reader::ThreadStates* same = part.of(1, tid);
      for (std::uint64_t tick = begin; tick < end; ++tick) {
        const std::size_t i = t.at(tick);
        const std::size_t j = same != nullptr ? same->at(tick) : 0;
        const auto expected = i < t.size() ? t.state[i] : reader::ThreadState::kUnknown;
        const auto got = same != nullptr && j < same->size() ? same->state[j] : reader::ThreadState::kUnknown;
        // Woken early and never blocked: that is known only when the thread runs again, which may be behind the cut.
        if (expected == reader::ThreadState::kWoken && got == reader::ThreadState::kBlocked && t.end_of(i) >= end)
          continue;
        if (expected == reader::ThreadState::kGone && got == reader::ThreadState::kUnknown) continue;
        EXPECT_EQ(got, expected) << "seed " << seed << " thread " << tid << " at " << tick;
        if (got == reader::ThreadState::kRunning && expected == got) {
          EXPECT_EQ(same->cpu[j], t.cpu[i]);
        }
      }
    }
  }
}

TEST(Cut, HasOnlyTheTasksThatOccur) {
  const auto log = make_log({leave_cpu(10, 0, 0, 1), leave_cpu(20, 0, 1, 11), leave_cpu(200, 0, 11, 2)});
  const reader::StateLog part = excerpt_states(log, 150, 300);
  std::vector<std::uint32_t> tids;
  for (const reader::Task& task : part.tasks) tids.push_back(task.tid);
  EXPECT_EQ(tids, (std::vector<std::uint32_t>{1, 2, 11}));
  EXPECT_EQ(describe(States(part), 1), "blocked(S) 150-300");
  EXPECT_EQ(describe(States(part), 2), "unknown 150-200 running@0 200-300");
}

}  // namespace
}  // namespace karst::test
