// What tracing costs a thread, and the credit that it has.
#include <gtest/gtest.h>

#include <cstdint>

#include "runtime/budget/budget_controller.h"

namespace karst::runtime {
namespace {

constexpr std::uint32_t kBudget = 50'000;  // 5%

TEST(Meters, tell_the_last_moments_and_the_last_second) {
  Meter m;
  m.start(kBudget);
  for (int i = 0; i < 200; ++i) m.add(5 * kMillisecond, 100'000, kBudget);  // 2%
  EXPECT_NEAR(m.recent(), 20'000, 200);
  EXPECT_NEAR(m.second(), 20'000, 200);
  EXPECT_FALSE(m.is_over(kBudget));
  EXPECT_TRUE(m.has_room(kBudget));
  for (int i = 0; i < 4; ++i) m.add(5 * kMillisecond, 2'000'000, kBudget);  // 40%
  EXPECT_GT(m.recent(), 350'000U);
  EXPECT_LT(m.second(), 40'000U);
  EXPECT_TRUE(m.is_over(kBudget));
}

TEST(Meters, what_was_spent_too_much_is_made_good) {
  Meter m;
  m.start(kBudget);
  EXPECT_EQ(m.target(kBudget), target_of(kBudget));
  for (int i = 0; i < 10; ++i) m.add(5 * kMillisecond, 1'000'000, kBudget);  // 20%
  EXPECT_EQ(m.target(kBudget), target_of(kBudget) / 2);
  int steps = 0;
  for (; m.target(kBudget) != target_of(kBudget) && steps < 1000; ++steps)
    m.add(5 * kMillisecond, std::uint64_t{5} * m.target(kBudget), kBudget);  // as aimed at
  EXPECT_GT(steps, 10);
  EXPECT_LT(steps, 200);  // a second
  // Until then half of the budget is too much.
  for (int i = 0; i < 10; ++i) m.add(5 * kMillisecond, 1'000'000, kBudget);
  for (int i = 0; i < 10; ++i) m.add(5 * kMillisecond, std::uint64_t{5} * (kBudget / 2), kBudget);
  EXPECT_TRUE(m.is_over(kBudget));
}

TEST(Meters, extreme_values_overflow_nothing) {
  Meter m;
  m.start(kMillion);
  m.add(1, ~std::uint64_t{0} / 2, kMillion);
  m.add(~std::uint64_t{0} / 2, 1, kMillion);
  m.add(~std::uint64_t{0} / 2, ~std::uint64_t{0} / 2, kMillion);
  m.add(0, 5, kMillion);
  EXPECT_LE(m.recent(), 64U * kMillion);
}

TEST(Meters, tell_when_the_credit_will_be_used_up) {
  Meter m;
  m.start(kBudget);
  EXPECT_EQ(m.credit_lasts(kBudget), 0U);  // nothing is known of the rate
  m.add(kMillisecond, kMillisecond / 2, kBudget);
  const std::uint64_t lasts = m.credit_lasts(kBudget);
  EXPECT_GT(lasts, 0U);
  EXPECT_FALSE(m.is_over(kBudget));
  m.add(lasts + lasts / 20, (lasts + lasts / 20) / 2, kBudget);
  EXPECT_TRUE(m.is_over(kBudget));
  EXPECT_EQ(m.credit_lasts(kBudget), 0U);
  m.start(kBudget);
  for (int i = 0; i < 100; ++i) m.add(kMillisecond, kMillisecond / 100, kBudget);
  EXPECT_EQ(m.credit_lasts(kBudget), 0U);  // it grows
}

}  // namespace
}  // namespace karst::runtime
