// Stacks that were sampled as threads left their CPUs, and the waits that they belong to: random threads, whose samples
// come within the clocks' error of the records of states.
#include "analysis/wait_stacks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "test/analysis/sample_states.h"
#include "test/analysis/sample_trace.h"

namespace karst {
namespace {

constexpr std::uint32_t kError = 100;  // ns; a tick is one

TEST(WaitStacks, AreThoseOfTheirWaits) {
  std::size_t waits = 0, none = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    test::SampleTrace trace;
    trace.process(10, "app", {"main"}).thread(10, "main").call(1, 2'000, 2'000'000);
    test::SampleStates states(1'000, 2'000'000);
    states.task(10, 10, "main").task(99, 98, "stranger", false);
    reader::SampleLog log;
    log.source.period_ns = 1000;
    std::vector<columns::TickRange> expected;
    std::uint64_t now = 2'000;
    while (now < 1'900'000) {
      states.go(now, 0, 99, 'R', 10);
      now += 4 * kError + below(3000);
      const bool blocks = below(3) != 0;
      states.go(now, 0, 10, blocks ? 'S' : 'R', 99);
      const std::uint64_t left = now;
      now += 1 + below(below(2) == 0 ? 50 : 5000);
      if (blocks) states.wake(now, 1, 10, 99);
      const std::uint64_t woken = now;
      if (below(4) != 0) {  // else the kernel left it out
        log.samples.push_back({left - 50, 10, 10, 0, 0, 0});
        log.waits.push_back({left - kError / 2 + below(kError), 10, 10, 0, 0, 0});
        expected.push_back(blocks ? columns::TickRange{left, woken} : columns::TickRange{0, 0});
        ++(blocks ? waits : none);
      }
      now += 1 + below(3000);
    }
    log.waits.push_back({500, 10, 11, 0, 0, 0});  // a thread whose states nobody knows
    expected.push_back({0, 0});
    trace.states(states.log());
    trace.samples(std::move(log));
    const reader::Trace open = trace.open();
    const analysis::WaitStacks stacks(open);
    const auto& read = open.samples().waits;
    ASSERT_EQ(read.size(), expected.size());
    std::rotate(expected.begin(), expected.end() - 1, expected.end());  // the reader sorts them
    for (std::size_t i = 0; i < read.size(); ++i) {
      EXPECT_EQ(stacks.blocked(read[i]).begin, expected[i].begin) << "seed " << seed << ", sample " << i;
      EXPECT_EQ(stacks.blocked(read[i]).end, expected[i].end) << "seed " << seed << ", sample " << i;
    }
  }
  EXPECT_GT(waits, 10'000U);
  EXPECT_GT(none, 5'000U);
}

TEST(WaitStacks, BelongToTheSampleThatCameWithThem) {
  test::SampleTrace trace;
  trace.process(10, "app", {"main"}).thread(10, "main").call(1, 2'000, 2'000'000);
  test::SampleStates states(1'000, 2'000'000);
  states.task(10, 10, "main");
  reader::SampleLog log;
  log.source.period_ns = 1000;
  // It left its CPU twice, and the records of states have the second time alone.
  states.go(10'000, 0, 0, 'R', 10).go(20'000, 0, 10, 'S', 0).wake(25'000, 1, 10, 0).go(25'100, 0, 0, 'R', 10);
  log.waits.push_back({12'000, 10, 10, 0, 0, 0});
  log.waits.push_back({20'000 - kError / 2, 10, 10, 0, 0, 0});
  trace.states(states.log());
  trace.samples(std::move(log));
  const reader::Trace open = trace.open();
  const analysis::WaitStacks stacks(open);
  const auto& read = open.samples().waits;
  EXPECT_EQ(stacks.blocked(read[0]).end, 0U);
  EXPECT_EQ(stacks.blocked(read[1]).begin, 20'000U);
  EXPECT_EQ(stacks.blocked(read[1]).end, 25'000U);
}

TEST(WaitStacks, NameTheCodeThatIsNeitherTracedNorTheCLibrarys) {
  test::SampleTrace trace;  // whose functions lie at 0x1010, 0x1020... of /bin/sample
  trace.process(10, "app", {"main", "traced"}).thread(10, "main").call(1, 2'000, 2'000'000);
  test::SampleStates states(1'000, 2'000'000);
  states.task(10, 10, "main");
  reader::SampleLog log;
  log.source.period_ns = 1000;
  log.functions = {{"/bin/sample", "", 0x1008, 16, 0, "main", ""},
                   {"/lib/libdb.so", "", 0x500, 64, 0, "db_wait", ""},
                   {"/lib/libc.so.6", "", 0x700, 64, 0, "poll", ""},
                   {"/bin/sample", "", 0x5000, 16, 0, "small", ""},
                   {"", "", 0, 0, 0, "[no file]", ""}};
  // main, db_wait, poll; main, poll; main, small, poll; nobody knows, poll; poll alone; none.
  log.stacks = {{0, 0}, {1, 1}, {2, 2}, {1, 2}, {1, 3}, {5, 2}, {0, 4}, {7, 2}, {0, 2}};
  const std::vector<std::pair<std::uint32_t, std::string>> expected = {{3, "db_wait"}, {4, ""}, {6, "small"},
                                                                       {8, ""},        {9, ""}, {0, ""}};
  std::uint64_t now = 10'000;
  for (const auto& [stack, name] : expected) {
    states.go(now, 0, 0, 'R', 10).go(now + 5'000, 0, 10, 'S', 0).wake(now + 9'000, 1, 10, 0);
    log.waits.push_back({now + 5'000, 10, 10, stack, 0, 0});
    now += 10'000;
  }
  trace.states(states.log());
  trace.samples(std::move(log));
  const reader::Trace open = trace.open();
  const analysis::WaitStacks stacks(open);
  const std::uint32_t task = open.states().of(10, 10)->task;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const reader::SampledFunction* const found = stacks.code_of(task, 15'000 + 10'000 * i);
    EXPECT_EQ(found == nullptr ? "" : found->name, expected[i].second) << i;
    EXPECT_EQ(stacks.code_of(task, 15'001 + 10'000 * i), nullptr);
  }
}

}  // namespace
}  // namespace karst
