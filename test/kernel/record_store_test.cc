// What collectors hand in comes out in order, bounded, with the state at its begin.
#include "kernel/record_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <utility>

#include "kernel/cpus.h"
#include "kernel/tracefs_place.h"
#include "test/kernel/records.h"

namespace karst::test {
namespace {

using kernel::RecordStore;

TEST(RecordStore, SortsWhatComesBetweenTwoSettlings) {
  RecordStore store(1 << 20);
  store.add_of_run(1, 1);
  store.add(leave_cpu(30, 1, 1, 0));
  store.add(leave_cpu(10, 0, 0, 1));
  store.settle(20);
  store.add(leave_cpu(20, 0, 1, 2));
  const reader::StateLog log = store.take(5, 100);
  ASSERT_EQ(log.records.size(), 3U);
  EXPECT_EQ(log.records[0].ticks, 10U);
  EXPECT_EQ(log.records[1].ticks, 20U);
  EXPECT_EQ(log.records[2].ticks, 30U);
  EXPECT_EQ(log.source.begin_ticks, 5U);
  EXPECT_EQ(log.source.end_ticks, 100U);
  EXPECT_EQ(log.source.cpus, 2U);
}

TEST(RecordStore, KnowsThreadsOfItsOwnProcess) {
  RecordStore store(1 << 20);
  const auto own = static_cast<std::uint32_t>(getpid());
  store.add_of_run(1, own);  // as nothing else is
  store.name(own, "karst", true);
  store.name(static_cast<std::uint32_t>(getppid()), "shell", true);
  const reader::StateLog log = store.take(5, 100);
  ASSERT_EQ(log.tasks.size(), 3U);
  for (const reader::Task& task : log.tasks) EXPECT_EQ(task.tracer, task.tid == own) << task.tid;
}

TEST(RecordStore, WhenItIsFullTheOldestGoAndTheStateBehindThemStays) {
  RecordStore store(1);  // the least there is
  store.add_of_run(1, 1);
  store.add_of_run(2, 1);
  store.add(leave_cpu(1, 1, 0, 2));
  store.add(leave_cpu(2, 1, 2, 0, 'D'));
  std::uint64_t ticks = 10;
  constexpr std::uint64_t kRounds = 20'000;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    store.add(leave_cpu(ticks, 0, 0, 1));
    store.add(leave_cpu(ticks + 5, 0, 1, 0));
    ticks += 10;
    store.settle(ticks);
  }
  const reader::StateLog log = store.take(0, ticks + 100);
  EXPECT_GT(log.source.overwritten_events, kRounds);
  EXPECT_EQ(log.source.overwritten_events + log.records.size(), 2 * kRounds + 2 + 4)
      << "four say what the two threads and CPUs did at the begin";
  const std::uint64_t begin = log.source.begin_ticks;
  EXPECT_GT(begin, 1000U);
  const reader::States states(log);
  EXPECT_EQ(describe(states, 2), "blocked(D) " + std::to_string(begin) + "-" + std::to_string(ticks + 100));
  const reader::ThreadStates& first = *states.of(1, 1);
  EXPECT_EQ(first.begin[0], begin);
  EXPECT_NE(first.state[0], reader::ThreadState::kUnknown);
}

// A child's first records may lie in another CPU's ring than those of its making.
TEST(RecordStore, KnowsDescendantsInWhateverOrderTheRingsAreRead) {
  RecordStore store(1 << 20);
  store.add_of_run(1, 1);
  store.name(1, "app", false);
  store.add(wake(40, 0, 3, 3));
  store.add({35, 3, 2, 1, 0, format::kStateNewThread, 0});
  store.add({30, 2, 1, 0, 1, format::kStateNewThread, 0});
  store.add(wake(31, 1, 1, 2));
  store.add(wake(32, 1, 1, 15));
  store.add({33, 16, 15, 0, 1, format::kStateNewThread, 0});
  const reader::StateLog log = store.take(0, 100);
  EXPECT_EQ(log.records.size(), 4U) << "what concerns others alone is left out";
  ASSERT_EQ(log.tasks.size(), 3U);
  EXPECT_EQ(log.tasks[1].pid, 2U) << "a process of its own";
  EXPECT_EQ(log.tasks[2].pid, 2U) << "a thread of it";
  EXPECT_EQ(log.tasks[2].name, "app");
}

// For snapshots while it goes on: nothing that is looked at is missing from the end.
TEST(RecordStore, ACopyIsTakenFromWhileTheOriginalGoesOn) {
  RecordStore store(1);
  store.add_of_run(1, 1);
  std::uint64_t ticks = 10;
  const auto go_on = [&](int rounds) {
    for (int i = 0; i < rounds; ++i, ticks += 10) {
      store.add(leave_cpu(ticks, 0, 0, 1));
      store.add(leave_cpu(ticks + 5, 0, 1, 0));
      store.settle(ticks);
    }
  };
  go_on(10'000);
  store.add({ticks, 2, 1, 1, 0, format::kStateNewThread, 0});  // not settled
  const reader::StateLog part = RecordStore(store).take(0, ticks + 1);
  ASSERT_EQ(part.tasks.size(), 2U);
  EXPECT_EQ(part.records.back().kind, format::kStateNewThread);
  EXPECT_GT(part.source.overwritten_events, 0U);
  EXPECT_NE(reader::States(part).of(1, 1)->state[0], reader::ThreadState::kUnknown) << "the begin is known";
  go_on(10'000);
  const reader::StateLog all = store.take(0, ticks);
  EXPECT_EQ(all.source.overwritten_events + all.records.size(), 2 * 20'000U + 1 + 2);
  EXPECT_EQ(all.tasks.size(), 2U);
}

TEST(RecordStore, CountsMigrationsAndLosses) {
  RecordStore store(1 << 20);
  store.add_of_run(1, 1);
  for (const auto& r : {leave_cpu(1, 0, 0, 1), leave_cpu(2, 0, 1, 0), leave_cpu(3, 1, 0, 1), leave_cpu(4, 1, 1, 0),
                        leave_cpu(5, 1, 0, 1), lost_from(6, 0), lost_to(7, 0, 9)})
    store.add(r);
  const reader::StateLog log = store.take(0, 10);
  EXPECT_EQ(log.source.migrations, 1U);
  EXPECT_EQ(log.source.lost_events, 9U);
}

// ftrace leaves switches out; perf's of the same threads are put in their place, those that both have count once.
TEST(RecordStore, WhatTheFirstSourceLacksIsTakenFromTheSecond) {
  RecordStore store(1 << 20);
  store.add_of_run(1, 1);
  store.add(leave_cpu(100'000, 0, 0, 1));
  store.add_beside(leave_cpu(102'000, 0, kNobody, 1));
  store.add_beside(leave_cpu(202'000, 0, 1, kNobody, kCouldRun));  // left out by the first
  store.add(leave_cpu(300'000, 0, 12, 1));
  store.add_beside(leave_cpu(302'000, 0, kNobody, 1));
  store.add(leave_cpu(400'000, 0, 1, 0, 'D'));
  store.settle(401'000);
  store.add_beside(leave_cpu(402'000, 0, 1, kNobody));
  const reader::States states(store.take(0, 500'000));
  EXPECT_EQ(describe(states, 1),
            "unknown 0-100000 running@0 100000-202000 preempted 202000-300000 running@0 300000-400000 "
            "blocked(D) 400000-500000");
  EXPECT_EQ(states.doubts().left_out, 0U);
}

TEST(RecordStore, TheSecondSourceAloneMayTellLateOfASwitch) {
  RecordStore store(1 << 20);
  store.add_of_run(1, 1);
  store.add(leave_cpu(1'000'000, 0, 0, 1));
  store.add(leave_cpu(1'030'000, 0, 1, 0));
  store.settle(2'000'000);
  store.add_beside(leave_cpu(9'000'000, 0, kNobody, 1));  // the virtual CPU stood still between the two records
  store.add_beside(leave_cpu(9'030'000, 0, 1, kNobody));
  EXPECT_EQ(store.take(0, 10'000'000).records.size(), 2U);
}

// Threads that take turns on two CPUs, and a first source that leaves out every fifth switch.
TEST(RecordStore, RandomSchedulesAreWholeAgain) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return random() % n; };
    RecordStore store(1 << 20);
    RecordStore complete(1 << 20);
    for (std::uint32_t tid = 1; tid < 10; ++tid) {
      store.add_of_run(tid, 1);
      complete.add_of_run(tid, 1);
    }
    std::uint32_t on[2] = {0, 0};
    std::uint64_t ticks = 1'000'000;
    std::uint64_t settled = 0;
    for (int i = 0; i < 2000; ++i) {
      ticks += 8'000 + below(300'000);
      const auto cpu = static_cast<std::uint16_t>(below(2));
      std::uint32_t next = below(12);  // 10 and 11 are of others
      if (next == on[1 - cpu] || next == on[cpu]) continue;
      const std::uint32_t left = std::exchange(on[cpu], next);
      const StateRecord record = leave_cpu(ticks, cpu, left, next, below(2) != 0 ? kCouldRun : 'S');
      complete.add(record);
      if (below(5) != 0) store.add(record);
      const std::uint64_t later = ticks + 500 + below(6'000);
      if (left != 0 && left < 10) store.add_beside(leave_cpu(later, cpu, left, kNobody, record.value));
      if (next != 0 && next < 10) store.add_beside(leave_cpu(later + 500, cpu, kNobody, next));
      if (below(50) == 0) store.settle(settled = ticks - 200'000);
    }
    const reader::States truth(complete.take(0, ticks + 100'000));
    const reader::States filled(store.take(0, ticks + 100'000));
    EXPECT_EQ(filled.doubts().left_out, 0U) << "seed " << seed;
    for (std::uint32_t tid = 1; tid < 10; ++tid) {
      const reader::ThreadStates& expected = *truth.of(1, tid);
      const reader::ThreadStates& seen = *filled.of(1, tid);
      ASSERT_EQ(expected.size(), seen.size()) << "seed " << seed << " thread " << tid;
      for (std::size_t s = 0; s < seen.size(); ++s) {
        EXPECT_EQ(seen.state[s], expected.state[s]);
        EXPECT_LE(seen.begin[s] - expected.begin[s], 7'000U);
      }
    }
  }
}

TEST(Cpus, AreParsedFromTheKernelsList) {
  using List = std::vector<std::uint16_t>;
  EXPECT_EQ(kernel::parse_cpu_list("0-3,8"), (List{0, 1, 2, 3, 8}));
  EXPECT_EQ(kernel::parse_cpu_list("5"), (List{5}));
  EXPECT_EQ(kernel::parse_cpu_list(""), List{});
  EXPECT_EQ(kernel::parse_cpu_list("1,x"), (List{1}));
  EXPECT_FALSE(kernel::online_cpus().empty());
}

TEST(Instances, AreOrphansWhenTheirMakerHasEnded) {
  EXPECT_FALSE(kernel::is_orphan(kernel::own_instance_name()));
  EXPECT_TRUE(kernel::is_orphan("karst-" + std::to_string(getpid()) + "-1")) << "another process had this number";
  EXPECT_TRUE(kernel::is_orphan("karst-4194304-5")) << "no process has a number so high";
  for (const char* foreign : {"karst", "karst-", "karst-1", "karst-1-", "karst-1-2x", "karst--1-2", "trace-cmd-1-2"})
    EXPECT_FALSE(kernel::is_orphan(foreign)) << foreign;
}

}  // namespace
}  // namespace karst::test
