// Series of what is used stay within their bounds, and what is thinned tells as much in the long run.
#include "kernel/usage_store.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace karst::test {
namespace {

using format::UsageKind;
using format::UsageOf;
using kernel::UsageStore;
using reader::UsageLog;

std::size_t points_of(const UsageLog& log) {
  std::size_t points = 0;
  for (const auto& series : log.series) points += series.points.size();
  return points;
}

TEST(UsageStore, AValueThatStaysTakesTwoPoints) {
  UsageStore store;
  const auto series = store.make(UsageKind::kMemory, UsageOf::kProcess, 7, 0);
  ASSERT_TRUE(series);
  for (std::uint64_t ticks = 0; ticks < 1000; ++ticks) store.add(*series, ticks, ticks < 500 ? 1 : 2);
  const UsageLog log = store.take();
  ASSERT_EQ(log.series.size(), 1U);
  const auto& points = log.series[0].points;
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[1].ticks, 499U);
  EXPECT_EQ(points[2].ticks, 500U);
  EXPECT_EQ(points[3].ticks, 999U);
  EXPECT_FALSE(log.series[0].thinned);
}

TEST(UsageStore, ATotalNeverFalls) {
  UsageStore store;
  const auto series = store.make(UsageKind::kCpu, UsageOf::kMachine, 0, 0);
  store.add(*series, 1, 10);
  store.add(*series, 2, 9);
  store.add(*series, 3, 11);
  const UsageLog log = store.take();
  EXPECT_EQ(log.series[0].points[1].value, 10);
  EXPECT_EQ(log.series[0].points[2].value, 11);
}

TEST(UsageStore, WhatIsOldIsThinnedAndKeepsItsPeaksAndSums) {
  constexpr std::size_t kMostKept = 1000;
  UsageStore store(10, kMostKept);
  const auto level = store.make(UsageKind::kMemory, UsageOf::kProcess, 7, 0);
  const auto total = store.make(UsageKind::kCpu, UsageOf::kProcess, 7, 0);
  constexpr std::uint64_t kTicks = 100'000;
  for (std::uint64_t ticks = 0; ticks < kTicks; ++ticks) {
    store.add(*level, ticks, ticks == 777 ? 1'000'000 : static_cast<std::int64_t>(ticks % 5));
    store.add(*total, ticks, static_cast<std::int64_t>(3 * ticks));
  }
  const UsageLog log = store.take();
  EXPECT_LE(points_of(log), kMostKept);
  EXPECT_GT(points_of(log), kMostKept / 2);
  for (const auto& series : log.series) {
    EXPECT_TRUE(series.thinned);
    EXPECT_EQ(series.points.front().ticks, 0U);
    EXPECT_EQ(series.points.back().ticks, kTicks - 1);
    for (std::size_t i = 1; i < series.points.size(); ++i)
      ASSERT_LT(series.points[i - 1].ticks, series.points[i].ticks);
    // The newest part is as it was read.
    for (std::size_t i = series.points.size() - 100; i < series.points.size(); ++i)
      ASSERT_EQ(series.points[i].ticks, series.points[i - 1].ticks + 1);
  }
  std::int64_t peak = 0;
  for (const auto& point : log.series[0].points) peak = std::max(peak, point.value);
  EXPECT_EQ(peak, 1'000'000);
  for (const auto& point : log.series[1].points)
    ASSERT_EQ(point.value, static_cast<std::int64_t>(3 * point.ticks)) << "a total is that of its time";
}

TEST(UsageStore, MakesNoMoreSeriesThanItMay) {
  UsageStore store(2, 10);
  EXPECT_TRUE(store.make(UsageKind::kCpu, UsageOf::kThread, 7, 8));
  EXPECT_TRUE(store.make(UsageKind::kCpu, UsageOf::kThread, 7, 9));
  EXPECT_FALSE(store.make(UsageKind::kCpu, UsageOf::kThread, 7, 10));
}

}  // namespace
}  // namespace karst::test
