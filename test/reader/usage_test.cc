// What was used, from files that no writer made: the rest is kept, and what is wrong is said.
#include "reader/usage.h"

#include <gtest/gtest.h>

#include <limits>

#include "reader/trace.h"
#include "test/reader/describe.h"
#include "test/reader/small_trace.h"

namespace karst::test {
namespace {

using format::ChunkType;
using format::PointRecord;
using format::SeriesRecord;

template <typename Record>
Bytes table_chunk(ChunkType type, std::initializer_list<Record> records) {
  Bytes payload = pack(format::TableHeader{0, sizeof(Record), static_cast<std::uint32_t>(records.size()), 0});
  for (const Record& record : records) append(payload, pack(record));
  return chunk(static_cast<std::uint32_t>(type), payload);
}

Bytes trace_of(std::initializer_list<SeriesRecord> series, std::initializer_list<PointRecord> points) {
  Bytes bytes = file_header();
  append(bytes, table_chunk(ChunkType::kSeries, series));
  append(bytes, table_chunk(ChunkType::kPoints, points));
  return bytes;
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(Usage, PointsArePutInOrderAndTotalsDoNotFall) {
  const Bytes bytes = trace_of({{0, 1, 0, 0, 0, 0}, {1, 21, 0, 0, 0, 0}}, {{50, 7, 0, 0},
                                                                           {10, 5, 0, 0},
                                                                           {60, 6, 0, 0},
                                                                           {70, kMost, 0, 0},
                                                                           {5, kLeast, 0, 0},
                                                                           {9, kLeast, 1, 0},
                                                                           {8, kMost, 1, 0}});
  const auto trace = reader::Trace::open_memory(bytes, "odd");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->usage().series.size(), 2U);
  const auto& total = trace->usage().series[0].points;
  ASSERT_EQ(total.size(), 3U);
  EXPECT_EQ(total[0].value, 5);
  EXPECT_EQ(total[1].value, 7);
  EXPECT_EQ(total[2].value, kMost);
  const auto& level = trace->usage().series[1].points;
  ASSERT_EQ(level.size(), 2U);
  EXPECT_EQ(level[1].value, kLeast);
  EXPECT_NE(all_problems(*trace).find("falls"), std::string::npos);
}

TEST(Usage, UnknownKindsAndLostSeriesCostTheirPointsAlone) {
  const Bytes bytes = trace_of({{0, 999, 0, 0, 0, 0},
                                {1, 1, 77, 0, 0, 0},
                                {0xffffffff, 4, 2, 7, 0, 1},
                                {0xffffffff, 1, 2, 7, 0, 0},
                                {5, 4, 0, 0, 0, 0}},
                               {{1, 1, 0, 0}, {1, 1, 1, 0}, {1, 1, 3, 0}, {1, 64, 0xffffffff, 0}});
  const auto trace = reader::Trace::open_memory(bytes, "odd");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->usage().series.size(), 1U) << "a series without points is none";
  EXPECT_EQ(trace->usage().series[0].kind, format::UsageKind::kMemory);
  EXPECT_TRUE(trace->usage().series[0].thinned);
  EXPECT_EQ(trace->usage().series[0].points[0].value, 64);
  EXPECT_NE(all_problems(*trace).find("same number"), std::string::npos);
}

TEST(Usage, APartHasThePointsOnBothSides) {
  const reader::UsageLog part = reader::excerpt_usage(small_usage(), 1150, 1200);
  ASSERT_EQ(part.series.size(), 3U);
  ASSERT_EQ(part.series[0].points.size(), 2U);
  EXPECT_EQ(part.series[0].points[0].ticks, 1100U);
  EXPECT_EQ(part.series[0].points[1].ticks, 1300U);
  EXPECT_EQ(part.series[1].points.size(), 1U);
  EXPECT_EQ(part.series[2].points[0].ticks, 1200U);
  EXPECT_TRUE(reader::excerpt_usage({}, 0, 10).empty());
}

}  // namespace
}  // namespace karst::test
