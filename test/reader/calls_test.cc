// Calls out of events: complete, overwritten, interrupted, impossible; and against a naive model.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <utility>

#include "reader/trace.h"
#include "test/reader/small_trace.h"
#include "write/synthetic.h"

namespace karst::test {
namespace {

using format::Event;
using reader::Calls;
using reader::kCallComplete;
using reader::kCallOpenBegin;
using reader::kCallOpenEnd;
using reader::kNoParent;

struct Block {
  std::uint64_t sequence;
  std::vector<Event> events;
  std::uint64_t ticks = 0;
};

// The calls of one thread that has these blocks; ids 1 to 9 are known.
Calls rebuild(const std::vector<Block>& blocks) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  std::vector<reader::Function> functions(9);
  for (std::uint32_t i = 0; i < 9; ++i) functions[i].id = i + 1;
  writer.add_functions(0, functions);
  for (const auto& block : blocks) writer.add_block(0, 0, block.sequence, block.ticks, block.events);
  EXPECT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  EXPECT_TRUE(trace.ok());
  if (blocks.empty()) return {};
  return rebuild_calls(*trace, trace->processes().at(0).threads.at(0));
}

struct Row {
  std::uint32_t function;
  std::uint64_t begin;
  std::uint64_t duration;
  std::uint32_t parent;
  std::uint32_t depth;
  unsigned marks;
  bool operator==(const Row&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << "{" << row.function << ", " << row.begin << ", " << row.duration << ", "
             << static_cast<std::int32_t>(row.parent) << ", " << row.depth << ", " << row.marks << "}";
}

std::vector<Row> rows(const Calls& calls) {
  std::vector<Row> result;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    result.push_back(
        {calls.function[i], calls.begin[i], calls.duration[i], calls.parent[i], calls.depth[i], calls.marks[i]});
  }
  return result;
}
using Rows = std::vector<Row>;

TEST(Column, IsUsedLikeAVector) {
  reader::Column<std::uint32_t> column{1, 2, 3};
  column.push_back(4);
  const auto copy = column;
  column.resize(6, 9);
  EXPECT_EQ(copy, (reader::Column<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(column, (reader::Column<std::uint32_t>{1, 2, 3, 4, 9, 9}));
  EXPECT_FALSE(copy == column);
  auto moved = std::move(column);
  moved.set_size(2);
  moved.shrink_to_fit();
  EXPECT_EQ(moved.capacity(), 2U);
  EXPECT_EQ(moved.back(), 2U);
  moved = copy;
  EXPECT_EQ(moved, copy);
  moved.clear();
  moved.shrink_to_fit();
  EXPECT_TRUE(moved.empty());
  EXPECT_EQ(moved.begin(), moved.end());
}

TEST(Calls, NestByEnterAndExitAcrossBlocks) {
  const auto calls = rebuild(
      {{0, {enter(10, 1), enter(20, 2)}}, {1, {leave(25, 2), enter(30, 3), leave(31, 3)}}, {2, {leave(40, 1)}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 30, kNoParent, 0, kCallComplete},
                               {2, 20, 5, 0, 1, kCallComplete},
                               {3, 30, 1, 0, 1, kCallComplete}}));
  EXPECT_EQ(calls.first_ticks, 10U);
  EXPECT_EQ(calls.last_ticks, 40U);
  EXPECT_EQ(calls.events, 6U);
}

TEST(Calls, OfAThreadWithoutEventsAreNone) {
  EXPECT_EQ(rebuild({}).size(), 0U);
  EXPECT_EQ(rebuild({{0, {}}, {1, {0, 0}}}).size(), 0U);
}

TEST(Calls, HolesAreSkipped) {
  const auto calls = rebuild({{0, {0, enter(10, 1), 0, leave(12, 1), 0}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 2, kNoParent, 0, kCallComplete}}));
  EXPECT_EQ(calls.events, 2U);
  EXPECT_EQ(calls.out_of_order, 0U);
}

TEST(Calls, StillRunningAtTheEndAreOpen) {
  const auto calls = rebuild({{0, {enter(10, 1), enter(20, 2), enter(30, 3), leave(35, 3)}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 25, kNoParent, 0, kCallOpenEnd},
                               {2, 20, 15, 0, 1, kCallOpenEnd},
                               {3, 30, 5, 1, 2, kCallComplete}}));
  EXPECT_EQ(calls.missing_exits, 0U);
}

TEST(Calls, WhoseBeginWasOverwrittenStartAtTheKeptHistoryAndAdoptWhatCameBefore) {
  // True history: 1{2{3{} 4{}} 5{}} 6{}, the first three enters are gone.
  const auto calls = rebuild({{7, {leave(10, 3), enter(20, 4), leave(21, 4), leave(30, 2), enter(40, 5)}},
                              {8, {leave(45, 5), leave(50, 1), enter(60, 6), leave(61, 6)}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 40, kNoParent, 0, kCallOpenBegin},
                               {2, 10, 20, 0, 1, kCallOpenBegin},
                               {3, 10, 0, 1, 2, kCallOpenBegin},
                               {4, 20, 1, 1, 2, kCallComplete},
                               {5, 40, 5, 0, 1, kCallComplete},
                               {6, 60, 1, kNoParent, 0, kCallComplete}}));
  EXPECT_EQ(calls.unmatched_exits, 0U);
}

TEST(Calls, WithoutABeginInAWholeHistoryAreCounted) {
  const auto calls = rebuild({{0, {leave(10, 3), enter(20, 4), leave(21, 4)}}});
  EXPECT_EQ(rows(calls), (Rows{{3, 10, 0, kNoParent, 0, kCallOpenBegin}, {4, 20, 1, kNoParent, 0, kCallComplete}}));
  EXPECT_EQ(calls.unmatched_exits, 1U);
}

TEST(Calls, LeftByAnExceptionEndAtTheLastEventBeforeTheCatcherReturns) {
  const auto calls = rebuild({{0,
                               {enter(10, 1), enter(20, 2), enter(30, 3), enter(33, 4), leave(35, 4), leave(40, 1),
                                enter(50, 5), leave(51, 5)}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 30, kNoParent, 0, kCallComplete},
                               {2, 20, 15, 0, 1, kCallOpenEnd},
                               {3, 30, 5, 1, 2, kCallOpenEnd},
                               {4, 33, 2, 2, 3, kCallComplete},
                               {5, 50, 1, kNoParent, 0, kCallComplete}}));
  EXPECT_EQ(calls.missing_exits, 2U);
  EXPECT_EQ(calls.unmatched_exits, 0U);
}

TEST(Calls, OfARecursiveFunctionEndInnermostFirst) {
  const auto calls = rebuild({{0, {enter(10, 1), enter(20, 1), leave(30, 1), leave(40, 1)}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 30, kNoParent, 0, kCallComplete}, {1, 20, 10, 0, 1, kCallComplete}}));
}

TEST(Calls, AnExitThatFitsNothingIsCountedAndIgnored) {
  const auto calls = rebuild({{5, {enter(10, 1), leave(15, 7), leave(20, 1)}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 10, kNoParent, 0, kCallComplete}}));
  EXPECT_EQ(calls.unmatched_exits, 1U);
}

TEST(Calls, OnTheTwoSidesOfAGapAreApart) {
  const auto calls = rebuild({{0, {enter(10, 1), enter(20, 2)}},
                              {1, {enter(22, 3)}},
                              {4, {leave(90, 3), enter(91, 4)}},
                              {5, {leave(92, 4), leave(95, 2), leave(99, 1)}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 12, kNoParent, 0, kCallOpenEnd},
                               {2, 20, 2, 0, 1, kCallOpenEnd},
                               {3, 22, 0, 1, 2, kCallOpenEnd},
                               {1, 90, 9, kNoParent, 0, kCallOpenBegin},
                               {2, 90, 5, 3, 1, kCallOpenBegin},
                               {3, 90, 0, 4, 2, kCallOpenBegin},
                               {4, 91, 1, 4, 2, kCallComplete}}));
  EXPECT_EQ(calls.missing_blocks, 2U);
  EXPECT_EQ(calls.unmatched_exits, 0U) << "after a gap an exit without its enter is nothing wrong";
  EXPECT_EQ(calls.first_ticks, 10U);
  EXPECT_EQ(calls.last_ticks, 99U);
}

TEST(Calls, TimesThatGoBackAreCountedAndHeld) {
  const auto calls = rebuild({{0, {enter(100, 1), enter(90, 2), leave(80, 2), enter(120, 3), leave(110, 1)}}});
  EXPECT_EQ(calls.out_of_order, 3U);
  EXPECT_EQ(rows(calls), (Rows{{1, 100, 20, kNoParent, 0, kCallComplete},
                               {2, 100, 0, 0, 1, kCallComplete},
                               {3, 120, 0, 0, 1, kCallOpenEnd}}));
  EXPECT_EQ(calls.last_ticks, 120U);
}

// A call within another one that ended before it began was looked for behind the end of its caller's rows.
TEST(Calls, SegmentsThatGoBackInTimeFollowOneAnother) {
  const auto calls = rebuild({{0, {enter(500, 1), enter(600, 2)}}, {4, {enter(100, 1), leave(150, 1)}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 500, 100, kNoParent, 0, kCallOpenEnd},
                               {2, 600, 0, 0, 1, kCallOpenEnd},
                               {1, 600, 0, kNoParent, 0, kCallComplete}}));
}

TEST(Calls, TheUpperBitsOfTheClockAreTheBlocks) {
  const std::uint64_t late = (std::uint64_t{5} << KARST_EVENT_TICK_BITS) + 3;
  const std::uint64_t later = (std::uint64_t{6} << KARST_EVENT_TICK_BITS) + 1;
  const auto calls = rebuild({{0, {enter(late, 1)}, late - 1}, {1, {leave(later, 1)}, later}});
  EXPECT_EQ(rows(calls), (Rows{{1, late, later - late, kNoParent, 0, kCallComplete}}));
}

TEST(Calls, EventsOfUnknownFunctionsAreKeptAndCounted) {
  const auto calls = rebuild({{0, {enter(10, 9), enter(11, 10), leave(12, 10), leave(13, 9), enter(14, 0x7fffff)}}});
  EXPECT_EQ(calls.unknown_ids, 3U);
  EXPECT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls.function[0], 9U);
  EXPECT_LT(calls.function[2], 1000U) << "tables by id would be as long";
}

TEST(Calls, RecursionMillionsDeepIsFollowed) {
  constexpr std::uint32_t kDeep = 3'000'000;
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writing::SyntheticTrace wanted;
  wanted.events = 2 * kDeep;
  wanted.shape = writing::SyntheticShape::kDeep;
  add_synthetic(writer, wanted);
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "deep");
  ASSERT_TRUE(trace.ok());
  const auto calls = rebuild_calls(*trace, trace->processes()[0].threads[0]);
  ASSERT_EQ(calls.size(), kDeep);
  EXPECT_EQ(calls.parent[kDeep - 1], kDeep - 2);
  EXPECT_EQ(calls.depth[65'535], 65'535U);
  EXPECT_EQ(calls.depth[kDeep - 1], 65'535U) << "depth stays at its greatest value";
  EXPECT_EQ(calls.duration[0], calls.last_ticks - calls.first_ticks);

  // The same with the way down overwritten: all that is left are exits.
  Bytes half;
  auto late = writing::TraceWriter::to_memory(half);
  wanted.dropped_blocks = kDeep / wanted.block_events + 1;
  add_synthetic(late, wanted);
  ASSERT_TRUE(late.finish().ok());
  trace = reader::Trace::open_memory(half, "half");
  ASSERT_TRUE(trace.ok());
  const auto open = rebuild_calls(*trace, trace->processes()[0].threads[0]);
  ASSERT_GT(open.size(), 2'900'000U);
  EXPECT_EQ(open.depth[open.size() - 1], 65'535U);
  EXPECT_TRUE(std::all_of(open.marks.begin(), open.marks.end(), [](auto mark) { return mark == kCallOpenBegin; }));
}

TEST(Calls, ImpossibleExitsUnderADeepStackAreCheap) {
  // Searching the whole stack for each would be 10^11 steps.
  constexpr std::uint32_t kDeep = 300'000;
  std::vector<Event> events;
  for (std::uint32_t i = 0; i < kDeep; ++i) events.push_back(enter(i, 1));
  for (std::uint32_t i = 0; i < kDeep; ++i) events.push_back(leave(kDeep + i, 2 + i % 7));
  for (std::uint32_t i = 0; i < kDeep; ++i) events.push_back(leave(2 * kDeep + i, 1));
  const auto calls = rebuild({{0, events}});
  EXPECT_EQ(calls.unmatched_exits, kDeep);
  EXPECT_EQ(calls.duration[0], 3 * kDeep - 1);
  EXPECT_EQ(std::count(calls.marks.begin(), calls.marks.end(), kCallComplete), kDeep);
}

// The naive model: the true tree of a random program, by recursion, and what a range of its events can show.
struct TrueCall {
  std::uint32_t function;
  std::size_t enter;
  std::size_t exit;
  std::size_t parent;  // index, or npos
};
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed) {
    while (events_.size() < 200) call(kNone, 0);
  }
  std::vector<Event> events_;
  std::vector<std::uint64_t> ticks_;
  std::vector<TrueCall> calls_;  // in order of enter

  // What the events [from, to) tell, as rows after the `base` rows of earlier segments.
  Rows visible(std::size_t from, std::size_t to, std::size_t base) const {
    Rows result;
    std::vector<std::size_t> row(calls_.size(), kNone);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const auto& call = calls_[i];
      const bool has_enter = call.enter >= from && call.enter < to;
      const bool has_exit = call.exit >= from && call.exit < to;
      if (!has_enter && !has_exit) continue;
      const std::uint64_t begin = ticks_[has_enter ? call.enter : from];
      const std::uint64_t end = ticks_[has_exit ? call.exit : to - 1];
      const std::size_t parent = call.parent == kNone ? kNone : row[call.parent];
      const unsigned marks = (has_enter ? 0U : unsigned{kCallOpenBegin}) | (has_exit ? 0U : unsigned{kCallOpenEnd});
      row[i] = base + result.size();
      result.push_back({call.function, begin, end - begin, parent == kNone ? kNoParent : static_cast<unsigned>(parent),
                        parent == kNone ? 0 : result[parent - base].depth + 1, marks});
    }
    return result;
  }
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

 private:
  void record(bool exit, std::uint32_t function) {
    now_ += below(5);  // two events may share a tick
    ticks_.push_back(now_);
    events_.push_back(format::make_event(now_, exit, function));
  }
  void call(std::size_t parent, int depth) {
    const auto function = static_cast<std::uint32_t>(1 + below(4));
    const std::size_t self = calls_.size();
    calls_.push_back({function, events_.size(), 0, parent});
    record(false, function);
    for (std::size_t n = depth < 12 ? below(4) : 0; n != 0; --n) call(self, depth + 1);
    calls_[self].exit = events_.size();
    record(true, function);
  }

  std::mt19937 random_;
  std::uint64_t now_ = 1000;
};

TEST(CallsProperty, WhatIsKeptOfARandomProgramIsTheTruePartOfItsTree) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomProgram program(seed);
    const std::size_t size = program.events_.size();
    // Blocks of random length; a random first one; some in between missing.
    std::vector<std::size_t> starts{0};
    while (starts.back() < size) starts.push_back(std::min(size, starts.back() + 1 + program.below(40)));
    const std::size_t blocks = starts.size() - 1;
    const std::size_t first = program.below(3) == 0 ? 0 : program.below(blocks);
    const std::size_t last = program.below(2) == 0 ? blocks : first + 1 + program.below(blocks - first);
    std::vector<Block> kept;
    Rows expected;
    std::uint64_t missing = 0;
    std::uint64_t skipped = 0;
    std::size_t segment = kNone;
    const auto end_segment = [&](std::size_t block) {
      if (segment == kNone) return;
      const auto part = program.visible(starts[segment], starts[block], expected.size());
      expected.insert(expected.end(), part.begin(), part.end());
      segment = kNone;
    };
    for (std::size_t i = first; i < last; ++i) {
      if (program.below(6) == 0) {
        end_segment(i);
        ++skipped;
        continue;
      }
      if (!kept.empty()) missing += skipped;
      skipped = 0;
      if (segment == kNone) segment = i;
      kept.push_back({i,
                      {program.events_.begin() + static_cast<std::ptrdiff_t>(starts[i]),
                       program.events_.begin() + static_cast<std::ptrdiff_t>(starts[i + 1])}});
    }
    end_segment(last);
    if (kept.empty()) continue;
    const auto calls = rebuild(kept);
    ASSERT_EQ(rows(calls), expected) << "seed " << seed;
    EXPECT_EQ(calls.missing_blocks, missing) << "seed " << seed;
    EXPECT_EQ(calls.missing_exits + calls.unmatched_exits + calls.out_of_order + calls.unknown_ids, 0U);
  }
}

// What a larger and a smaller thread left behind changes nothing.
TEST(Calls, AreTheSameInMemoryThatWasUsed) {
  Calls used;
  for (const std::uint64_t events : {40'000U, 2'000U, 0U, 90'000U}) {
    Bytes bytes;
    auto writer = writing::TraceWriter::to_memory(bytes);
    writing::SyntheticTrace wanted;
    wanted.events = events;
    wanted.shape = writing::SyntheticShape::kRandom;
    wanted.dropped_blocks = events == 90'000 ? 2 : 0;
    wanted.request_events = 500;
    writing::add_synthetic(writer, wanted);
    ASSERT_TRUE(writer.finish().ok());
    auto trace = reader::Trace::open_memory(bytes, "t");
    ASSERT_TRUE(trace.ok());
    const reader::Thread& thread = trace->processes().at(0).threads.at(0);
    const Calls fresh = rebuild_calls(*trace, thread);
    used.taken.resize(100, 7);
    used = rebuild_calls(*trace, thread, std::move(used));
    EXPECT_EQ(rows(used), rows(fresh));
    EXPECT_EQ(used.taken.size(), 0U);
    EXPECT_EQ(used.notes.size(), fresh.notes.size());
    EXPECT_EQ(used.note_bytes, fresh.note_bytes);
    EXPECT_EQ(std::tuple(used.events, used.first_ticks, used.last_ticks, used.missing_blocks),
              std::tuple(fresh.events, fresh.first_ticks, fresh.last_ticks, fresh.missing_blocks));
  }
}

}  // namespace
}  // namespace karst::test
