#include "analysis/selection.h"

#include <gtest/gtest.h>

#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using test::SampleTrace;

class SelectionTest : public testing::Test {
 protected:
  SelectionTest() : trace_(make()) {}

  reader::Trace make() {
    sample_.process(10, "parent", {"main"}).thread(10, "parent").call(1, 2000, 2010);
    sample_.thread(11, "worker").call(1, 1500, 1600);
    sample_.process(20, "child", {"main"}).thread(20, "child").thread(21, "worker").call(1, 3000, 3500);
    return sample_.open();
  }

  std::vector<std::uint32_t> tids(const Selection& selection) const {
    std::vector<std::uint32_t> found;
    const auto threads = select_threads(trace_, selection);
    if (!threads) return found;
    for (const reader::Thread* thread : *threads) found.push_back(thread->tid);
    return found;
  }

  SampleTrace sample_;
  reader::Trace trace_;
};

TEST_F(SelectionTest, NothingAskedIsEverything) { EXPECT_EQ(tids({}), (std::vector<std::uint32_t>{10, 11, 20, 21})); }

TEST_F(SelectionTest, ThreadsByNameAndByTid) {
  EXPECT_EQ(tids({.thread = "worker", .process = ""}), (std::vector<std::uint32_t>{11, 21}));
  EXPECT_EQ(tids({.thread = "20", .process = ""}), (std::vector<std::uint32_t>{20}));
}

TEST_F(SelectionTest, ProcessNarrowsThreads) {
  EXPECT_EQ(tids({.thread = "worker", .process = "20"}), (std::vector<std::uint32_t>{21}));
}

TEST_F(SelectionTest, WhatIsNotThereIsAnErrorThatListsWhatIs) {
  const auto thread = select_threads(trace_, {.thread = "nobody", .process = ""});
  ASSERT_FALSE(thread);
  EXPECT_NE(thread.error().message.find("worker (11)"), std::string::npos) << thread.error().message;
  const auto process = select_threads(trace_, {.thread = "", .process = "99"});
  ASSERT_FALSE(process);
  EXPECT_NE(process.error().message.find("20 (child)"), std::string::npos) << process.error().message;
  EXPECT_FALSE(select_threads(trace_, {.thread = "", .process = "12x"}));
}

TEST_F(SelectionTest, SpanOfTheHistoryIsOverAllThreads) {
  EXPECT_EQ(first_ticks(trace_), 1000U);  // the thread without events has an empty block there
  EXPECT_EQ(last_ticks(trace_), 3500U);
}

TEST_F(SelectionTest, FunctionSetAnswersForIdsOutsideTheTable) {
  const FunctionSet set(trace_, [](std::string_view name) { return name == "function#77"; });
  EXPECT_TRUE(set.empty());
  EXPECT_TRUE(set.contains(0, 77));
  EXPECT_FALSE(set.contains(0, 1));
}

TEST(Clip, CallsEndAtTheRangesEdgesAndAreMarkedOpenThere) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "before", "inside", "behind"}).thread(10, "app");
  sample.enter(1, 1000).call(2, 1100, 1600).call(3, 1700, 1800).call(4, 1900, 2500).exit(1, 3000);
  const reader::Trace trace = sample.open();
  reader::Calls calls = reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
  clip_calls(calls, {1500, 2000});
  ASSERT_EQ(calls.size(), 4U);
  const auto expect = [&](std::uint32_t row, std::uint64_t begin, std::uint64_t duration, int marks) {
    EXPECT_EQ(calls.begin[row], begin);
    EXPECT_EQ(calls.duration[row], duration);
    EXPECT_EQ(calls.marks[row], marks);
  };
  expect(0, 1500, 500, reader::kCallOpenBegin | reader::kCallOpenEnd);
  expect(1, 1500, 100, reader::kCallOpenBegin);
  expect(2, 1700, 100, reader::kCallComplete);
  expect(3, 1900, 100, reader::kCallOpenEnd);
}

}  // namespace
}  // namespace karst::analysis
