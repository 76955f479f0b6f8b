#include "analysis/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

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

TEST_F(SelectionTest, ThreadsAreLeftOutByNameAndByTid) {
  EXPECT_EQ(tids({.thread = "", .process = "", .not_thread = "worker"}), (std::vector<std::uint32_t>{10, 20}));
  EXPECT_EQ(tids({.thread = "worker", .process = "", .not_thread = "21"}), (std::vector<std::uint32_t>{11}));
  const auto nobody = select_threads(trace_, {.thread = "", .process = "", .not_thread = "nobody"});
  ASSERT_FALSE(nobody);
  EXPECT_NE(nobody.error().message.find("worker (11)"), std::string::npos) << nobody.error().message;
  const auto none = select_threads(trace_, {.thread = "worker", .process = "", .not_thread = "worker"});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("left"), std::string::npos) << none.error().message;
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
  filter_calls(calls, 0, {.range = columns::TickRange{1500, 2000}});
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

// "a1000-1100 b1010-1050": what is left, each behind its caller's name.
std::string left(const reader::Trace& trace, const CallFilter& filter) {
  const reader::Process& process = trace.processes()[0];
  reader::Calls calls = reader::rebuild_calls(trace, process.threads[0]);
  filter_calls(calls, 0, filter);
  std::string text;
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    const auto name = [&](std::uint32_t of) { return trace.function(process, calls.function[of]).name; };
    if (calls.parent[row] != reader::kNoParent) text += name(calls.parent[row]) + ">";
    text += name(row) + std::to_string(calls.begin[row]) + "-" +
            std::to_string(calls.begin[row] + calls.duration[row]) + " ";
  }
  return text;
}

TEST(Filter, ShortCallsGoWithAllTheyContain) {
  SampleTrace sample;
  EXPECT_EQ(left(sample.nested_calls(), {.range = {}, .min_ticks = 35}), "a1000-1100 a>b1010-1050 ");
}

TEST(Filter, OpenCallsAreNeverTooShort) {
  SampleTrace sample;
  sample.process(1, "app", {"a", "b"}).thread(1, "app").enter(1, 1000).enter(2, 1010);
  EXPECT_EQ(left(sample.open(), {.range = {}, .min_ticks = 1'000'000}), "a1000-1010 a>b1010-1010 ");
}

TEST(Filter, BelowKeepsWholeSubtreesWithoutTheirCallers) {
  SampleTrace sample;
  const reader::Trace trace = sample.nested_calls();
  const FunctionSet only_b(trace, [](std::string_view name) { return name == "b"; });
  EXPECT_EQ(left(trace, {.range = {}, .below = &only_b}), "b1010-1050 b>c1020-1021 b>b1030-1040 b1200-1201 ");
}

TEST(Filter, WithoutFunctionsWhatTheyCallIsTheirCallers) {
  SampleTrace sample;
  const reader::Trace trace = sample.nested_calls();
  const FunctionSet only_b(trace, [](std::string_view name) { return name == "b"; });
  EXPECT_EQ(left(trace, {.range = {}, .without = &only_b}), "a1000-1100 a>c1020-1021 a>c1060-1090 ");
  EXPECT_EQ(left(trace, {.range = columns::TickRange{1020, 1060}, .without = &only_b}), "a1020-1060 a>c1020-1021 ");
}

TEST(Filter, CallsThatOnlyTouchTheRangeAreNotInIt) {
  SampleTrace sample;
  const reader::Trace trace = sample.nested_calls();
  EXPECT_EQ(left(trace, {.range = columns::TickRange{1040, 1060}}), "a1040-1060 a>b1040-1050 ");
}

TEST(Filter, TheSameAsLookingAtEachCallAlone) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    SampleTrace sample;
    sample.process(1, "app", {"a", "b", "c"}).thread(1, "app");
    std::vector<std::uint32_t> stack;
    std::uint64_t now = 1000;
    for (int i = 0; i < 200; ++i) {
      now += below(20);
      if (stack.size() < 8 && below(2) == 0) {
        stack.push_back(1 + below(3));
        sample.enter(stack.back(), now);
      } else if (!stack.empty()) {
        sample.exit(stack.back(), now);
        stack.pop_back();
      }
    }
    const reader::Trace trace = sample.open();
    const FunctionSet only_b(trace, [](std::string_view name) { return name == "b"; });
    const std::uint64_t begin = 1000 + below(1000);
    const CallFilter filter{columns::TickRange{begin, begin + 1 + below(1000)}, below(2) == 0 ? &only_b : nullptr,
                            below(60)};
    const reader::Calls all = reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
    reader::Calls calls = reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
    filter_calls(calls, 0, filter);
    std::uint32_t at = 0;
    for (std::uint32_t row = 0; row < all.size(); ++row) {
      bool in_b = filter.below == nullptr, short_one = false;
      for (std::uint32_t up = row; up != reader::kNoParent; up = all.parent[up]) {
        in_b = in_b || all.function[up] == 2;
        short_one = short_one || (!reader::call_is_open(all.marks[up]) && all.duration[up] < filter.min_ticks);
      }
      const std::uint64_t from = all.begin[row], to = from + all.duration[row];
      const bool inside = from < filter.range->end && (to > filter.range->begin || from >= filter.range->begin);
      if (!in_b || short_one || !inside) continue;
      ASSERT_LT(at, calls.size());
      EXPECT_EQ(calls.function[at], all.function[row]);
      EXPECT_EQ(calls.begin[at], std::max(from, filter.range->begin));
      EXPECT_EQ(calls.begin[at] + calls.duration[at], std::min(to, filter.range->end));
      ++at;
    }
    EXPECT_EQ(at, calls.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace karst::analysis
