// What a budget makes of events: which functions they are of, and how long their calls took.
#include "runtime/budget/budget_sample.h"

#include <gtest/gtest.h>

#include <vector>

namespace karst::runtime {
namespace {

class Samples : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(sample.create()); }
  void enter(std::uint32_t f, std::uint64_t at) { events.push_back(format::make_event(at, false, f)); }
  void exit(std::uint32_t f, std::uint64_t at) { events.push_back(format::make_event(at, true, f)); }
  void add(std::uint64_t since = 0, bool follows = false, std::uint32_t weight = 1) {
    sample.add(events.data(), static_cast<std::uint32_t>(events.size()), 0, since, weight, follows);
    events.clear();
  }
  const FunctionSample* of(std::uint32_t f) const {
    for (std::uint32_t i = 0; i < sample.size(); ++i)
      if (sample[i].function == f) return &sample[i];
    return nullptr;
  }
  std::vector<format::Event> events;
  EventSample sample;
};

TEST_F(Samples, calls_are_rebuilt_also_across_blocks_and_under_recursion) {
  enter(1, 100);
  enter(2, 110);
  enter(2, 120);
  exit(2, 150);
  add();
  exit(2, 190);
  exit(1, 200);
  add(0, true);
  sample.finish();
  ASSERT_NE(of(1), nullptr);
  EXPECT_EQ(of(1)->calls, 1U);
  EXPECT_EQ(of(1)->ticks, 100U);
  EXPECT_EQ(of(2)->calls, 2U);
  EXPECT_EQ(of(2)->ticks, 30U + 80U);
  EXPECT_EQ(of(2)->longest, 80U);
  EXPECT_EQ(sample.weight(), 6U);
}

TEST_F(Samples, calls_that_reach_beyond_count_for_what_is_seen_of_them) {
  enter(3, 100);
  exit(3, 110);
  exit(1, 500);
  enter(2, 600);
  enter(3, 900);
  exit(3, 1000);
  add();
  sample.finish();
  EXPECT_EQ(of(1)->ticks, 400U);
  EXPECT_EQ(of(2)->ticks, 400U);
  EXPECT_EQ(of(3)->longest, 100U);
}

TEST_F(Samples, a_gap_ends_what_was_open) {
  enter(1, 100);
  enter(2, 150);
  add();
  exit(1, 100'000);
  add();
  sample.finish();
  EXPECT_EQ(of(1)->calls, 2U);
  EXPECT_LE(of(1)->longest, 50U);
}

TEST_F(Samples, what_is_older_and_marks_and_empty_slots_are_left_out) {
  enter(1, 100);
  enter(2, 200);
  events.push_back(0);
  events.push_back(format::make_mark(210, format::Mark::kUnwound));
  exit(2, 250);
  add(200);
  sample.finish();
  EXPECT_EQ(of(1), nullptr);
  EXPECT_EQ(of(2)->weight, 2U);
}

TEST_F(Samples, ids_of_tail_calls_count_for_their_function_and_unknown_ones_for_nobody) {
  sample.set_owner_of([](void*, std::uint32_t id) { return id == 70 ? 7U : id == 9 ? 0U : id; }, nullptr);
  enter(7, 100);
  exit(70, 130);
  enter(9, 140);
  exit(9, 150);
  add(0, false, 5);
  sample.finish();
  EXPECT_EQ(of(7)->weight, 10U);
  EXPECT_EQ(of(7)->ticks, 30U);
  EXPECT_EQ(of(70), nullptr);
  EXPECT_EQ(of(9), nullptr);
}

TEST_F(Samples, more_functions_than_there_is_room_for_and_hostile_events) {
  for (int round = 0; round < 3; ++round) {
    sample.clear();
    for (std::uint32_t f = 1; f < 40'000; ++f) enter(f % 3 == 0 ? f : f * 7, (f * 2654435761U) % 5000);
    add();
    for (std::uint32_t f = 1; f < 40'000; ++f) exit(f, 6000 + f);
    add(0, true);
    sample.finish();
    EXPECT_LE(sample.size(), EventSample::kMostFunctions);
  }
}

}  // namespace
}  // namespace karst::runtime
