// Zones that begin and end by calls of their own, which may be wrapped in functions that are traced.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "reader/trace.h"
#include "test/reader/small_trace.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

using format::Event;
using reader::Calls;
using reader::kCallComplete;
using reader::kCallOpenEnd;

// Ids 1 to 9 are functions, 11 to 15 loose zones, 16 a zone that the source has.
Calls rebuild(const std::vector<Event>& events, const std::vector<reader::Switch>& switches = {}) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  std::vector<reader::Function> functions;
  for (std::uint32_t id = 1; id < 17; ++id) {
    reader::Function f;
    f.id = id;
    f.address = 0x1000 + id * 16;
    f.note = id > 10;
    if (id == 16) {
      f.file = "a.c";
      f.line = 7;
    }
    functions.push_back(f);
  }
  writer.add_functions(0, functions);
  writer.add_symbols(0, functions);
  writer.add_switches(0, switches);
  writer.add_block(0, 0, 0, 0, events);
  EXPECT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  EXPECT_TRUE(trace.ok());
  return rebuild_calls(*trace, trace->processes().at(0).threads.at(0));
}

struct Row {
  std::uint32_t function;
  std::uint64_t begin;
  std::uint64_t duration;
  std::uint32_t depth;
  std::uint32_t parent;
  unsigned marks = kCallComplete;
  bool operator==(const Row&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Row& r) {
  return out << "{" << r.function << ", " << r.begin << ", " << r.duration << ", " << r.depth << ", " << r.parent
             << ", " << r.marks << "}";
}

std::vector<Row> rows(const Calls& calls) {
  std::vector<Row> result;
  for (std::size_t i = 0; i < calls.size(); ++i)
    result.push_back(
        {calls.function[i], calls.begin[i], calls.duration[i], calls.depth[i], calls.parent[i], calls.marks[i]});
  return result;
}
std::uint64_t doubts(const Calls& calls) { return calls.unmatched_exits + calls.missing_exits; }

constexpr std::uint32_t kNone = reader::kNoParent;

TEST(LooseZones, WrappersEndAndBeginWhereTheZoneDoes) {
  const auto calls = rebuild({enter(10, 1), enter(20, 2), enter(25, 11), leave(30, 2), enter(40, 3), leave(50, 3),
                              enter(60, 4), leave(65, 11), leave(70, 4), leave(80, 1)});
  EXPECT_EQ(rows(calls),
            (std::vector<Row>{
                {1, 10, 70, 0, kNone}, {2, 20, 5, 1, 0}, {11, 25, 35, 1, 0}, {3, 40, 10, 2, 2}, {4, 60, 10, 1, 0}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(LooseZones, AlsoOnceFunctionsWereSwitchedOff) {
  // Deeper in the stack than what follows.
  const auto calls =
      rebuild({enter(10, 1), enter(11, 5), enter(12, 9), leave(16, 5), enter(20, 2), enter(25, 11), leave(30, 2),
               enter(40, 3), leave(50, 3), enter(60, 4), leave(65, 11), leave(70, 4), leave(80, 1)},
              {{14, 15, 9, 1, false, 0}});
  EXPECT_EQ(rows(calls), (std::vector<Row>{{1, 10, 70, 0, kNone},
                                           {5, 11, 5, 1, 0},
                                           {9, 12, 2, 2, 1, reader::kCallCut},
                                           {2, 20, 5, 1, 0},
                                           {11, 25, 35, 1, 0},
                                           {3, 40, 10, 2, 4},
                                           {4, 60, 10, 1, 0}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(LooseZones, WrappersOfWrappersToo) {
  const auto calls = rebuild({enter(10, 1), enter(20, 2), enter(21, 3), enter(22, 4), leave(23, 4), enter(25, 11),
                              enter(26, 5), leave(27, 5), leave(30, 3), leave(31, 2), enter(60, 6), enter(61, 7),
                              leave(65, 11), leave(66, 7), leave(70, 6), leave(80, 1)});
  EXPECT_EQ(rows(calls), (std::vector<Row>{{1, 10, 70, 0, kNone},
                                           {2, 20, 5, 1, 0},
                                           {3, 21, 4, 2, 1},
                                           {4, 22, 1, 3, 2},
                                           {11, 25, 35, 1, 0},
                                           {5, 26, 1, 2, 4},
                                           {6, 60, 10, 1, 0},
                                           {7, 61, 5, 2, 6}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(LooseZones, OneThatTheOutermostFunctionBegins) {
  const auto calls = rebuild({enter(20, 2), enter(25, 11), enter(26, 12), leave(30, 2), enter(60, 4), leave(64, 12),
                              leave(65, 11), leave(70, 4)});
  EXPECT_EQ(rows(calls), (std::vector<Row>{
                             {2, 20, 5, 0, kNone}, {11, 25, 35, 0, kNone}, {12, 26, 34, 1, 1}, {4, 60, 10, 0, kNone}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(LooseZones, AZoneOfTheSourceEndsWithItsFunction) {
  const auto calls = rebuild({enter(10, 1), enter(20, 2), enter(25, 16), leave(30, 2), leave(65, 16), leave(80, 1)});
  EXPECT_EQ(rows(calls), (std::vector<Row>{{1, 10, 70, 0, kNone}, {2, 20, 10, 1, 0}, {16, 25, 0, 2, 1, kCallOpenEnd}}));
  EXPECT_EQ(doubts(calls), 2U);
}

TEST(LooseZones, AReturnThatWasLostIsStillOne) {
  // Function 3 is within the zone and has no return: it is no wrapper.
  const auto calls =
      rebuild({enter(10, 1), enter(20, 2), enter(25, 11), enter(26, 3), leave(30, 2), leave(31, 11), leave(80, 1)});
  EXPECT_EQ(doubts(calls), 3U);
  EXPECT_EQ(calls.marks[2], kCallOpenEnd);
}

TEST(LooseZones, WhatWouldCostTooMuchIsNotMoved) {
  std::vector<Event> many = {enter(10, 1), enter(20, 2), enter(25, 11)};
  for (std::uint64_t i = 0; i < 100; ++i) {
    many.push_back(enter(30 + i, 3));
    many.push_back(leave(30 + i, 3));
  }
  many.push_back(leave(200, 2));
  many.push_back(leave(300, 1));
  EXPECT_EQ(rebuild(many).missing_exits, 1U);

  std::vector<Event> deep = {enter(1, 1)};
  for (std::uint64_t i = 0; i < 100'000; ++i) deep.push_back(enter(2 + i, i % 2 == 0 ? 2 : 11));
  for (std::uint64_t i = 0; i < 100'000; ++i) deep.push_back(leave(200'000 + i, 2));
  const auto calls = rebuild(deep);
  EXPECT_EQ(calls.size(), 100'001U);
  for (std::size_t row = 1; row < calls.size(); ++row)
    ASSERT_TRUE(calls.parent[row] == kNone || calls.parent[row] < row);
}

// Whatever the events are, calls lie within each other.
TEST(LooseZones, RandomEventsMakeCallsThatLieWithinEachOther) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    std::vector<Event> events;
    std::vector<std::uint32_t> open;
    std::uint64_t ticks = 10;
    for (int n = 0; n < 400; ++n) {
      ticks += random() % 3;
      const std::uint32_t id = random() % 2 == 0 ? 1 + random() % 5 : 11 + random() % 3;
      if (random() % 2 == 0) {
        events.push_back(enter(ticks, id));
        open.push_back(id);
      } else if (!open.empty() && random() % 8 != 0) {
        // The innermost one, or one a little further out.
        const std::size_t out = std::min<std::size_t>(open.size() - 1, random() % 3 == 0 ? random() % 4 : 0);
        const auto at = open.end() - 1 - static_cast<std::ptrdiff_t>(out);
        events.push_back(leave(ticks, *at));
        open.erase(at);
      } else {
        events.push_back(leave(ticks, id));
      }
    }
    const Calls calls = rebuild(events);
    for (std::size_t row = 0; row < calls.size(); ++row) {
      const std::uint32_t parent = calls.parent[row];
      if (parent == kNone) {
        ASSERT_EQ(calls.depth[row], 0U) << round;
        continue;
      }
      ASSERT_LT(parent, row) << round;
      ASSERT_EQ(calls.depth[row], calls.depth[parent] + 1U) << round;
      ASSERT_GE(calls.begin[row], calls.begin[parent]) << round;
      ASSERT_LE(calls.begin[row] + calls.duration[row], calls.begin[parent] + calls.duration[parent]) << round;
      ASSERT_GE(calls.begin[row], calls.begin[row - 1]) << round;
    }
  }
}

}  // namespace
}  // namespace karst::test
