// Calls that did not return: what the marks among the events make of them.
#include <gtest/gtest.h>

#include <random>
#include <span>

#include "reader/held_times.h"
#include "reader/trace.h"
#include "test/reader/small_trace.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

using format::Event;
using format::Mark;
using reader::Calls;
using reader::kCallComplete;
using reader::kCallJumped;
using reader::kCallOpenBegin;
using reader::kCallOpenEnd;
using reader::kCallResumed;
using reader::kCallSwitched;
using reader::kCallTail;
using reader::kCallUnwound;

constexpr std::uint64_t kHome = 0x7ffd00001230;
constexpr std::uint64_t kStackA = 0x7f0000002000;
constexpr std::uint64_t kStackB = 0x7f0000003000;

Event mark(std::uint64_t ticks, Mark m) { return format::make_mark(ticks, m); }
Event place(std::uint64_t stack_pointer) { return format::make_place(stack_pointer); }
Event sets(std::uint64_t stack_pointer) { return format::make_place(stack_pointer, Mark::kSetPlace); }

struct Block {
  std::uint64_t sequence;
  std::vector<Event> events;
};

reader::Trace open(const std::vector<Block>& blocks, Bytes& bytes) {
  auto writer = writing::TraceWriter::to_memory(bytes);
  writer.add_functions(0, paired_functions());
  for (const Block& block : blocks) writer.add_block(0, 0, block.sequence, 0, block.events);
  EXPECT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  EXPECT_TRUE(trace.ok());
  return std::move(*trace);
}

Calls rebuild(const std::vector<Block>& blocks) {
  Bytes bytes;
  const reader::Trace trace = open(blocks, bytes);
  return rebuild_calls(trace, trace.processes().at(0).threads.at(0));
}
Calls rebuild(const std::vector<Event>& events) { return rebuild({{0, events}}); }

struct Row {
  std::uint32_t function;
  std::uint64_t begin;
  std::uint64_t duration;
  std::uint32_t depth;
  unsigned marks;
  bool operator==(const Row&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Row& r) {
  return out << "{" << r.function << ", " << r.begin << ", " << r.duration << ", " << r.depth << ", " << r.marks << "}";
}
using Rows = std::vector<Row>;

Rows rows(const Calls& calls) {
  Rows result;
  for (std::size_t i = 0; i < calls.size(); ++i)
    result.push_back({calls.function[i], calls.begin[i], calls.duration[i], calls.depth[i], calls.marks[i]});
  return result;
}

std::uint64_t doubts(const Calls& calls) {
  return calls.out_of_order + calls.unmatched_exits + calls.missing_exits + calls.unknown_ids + calls.strange_jumps +
         calls.beyond_limit;
}

TEST(WaysOut, AnUnwoundCallEndsWhenTheExceptionLeftIt) {
  const auto calls = rebuild({enter(10, 1), enter(20, 2), enter(30, 3), mark(40, Mark::kUnwound), leave(40, 3),
                              mark(41, Mark::kUnwound), leave(41, 2), enter(50, 4), leave(60, 4), leave(70, 1)});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 60, 0, kCallComplete},
                               {2, 20, 21, 1, kCallUnwound},
                               {3, 30, 10, 2, kCallUnwound},
                               {4, 50, 10, 1, kCallComplete}}));
  EXPECT_EQ(doubts(calls), 0U);
  EXPECT_EQ(calls.events, 10U);
}

TEST(WaysOut, AnUnwoundCallWhoseBeginWasOverwrittenIsOpenThere) {
  const auto calls = rebuild({{7, {enter(10, 2), leave(20, 2), mark(30, Mark::kUnwound), leave(30, 1)}}});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 20, 0, kCallOpenBegin | kCallUnwound}, {2, 10, 10, 1, kCallComplete}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(WaysOut, AMarkThatWasCutFromItsExitIsNothing) {
  for (const std::vector<Event>& cut :
       {std::vector<Event>{enter(10, 1), mark(20, Mark::kUnwound)},
        std::vector<Event>{enter(10, 1), mark(20, Mark::kUnwound), 0, 0},
        std::vector<Event>{enter(10, 1), mark(20, Mark::kJumped)}, std::vector<Event>{enter(10, 1), place(kHome), 0},
        std::vector<Event>{enter(10, 1), mark(20, Mark::kSwitched), place(kHome)}}) {
    const auto calls = rebuild(cut);
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(calls.marks[0], kCallOpenEnd);
    EXPECT_EQ(doubts(calls), 0U);
  }
}

TEST(WaysOut, ATailExitEndsItsFunctionAndTheCalleeStandsBesideIt) {
  const auto calls = rebuild({enter(10, 1), enter(20, 2), leave(30, 12), enter(31, 3), leave(40, 3), leave(50, 1)});
  EXPECT_EQ(rows(calls),
            (Rows{{1, 10, 40, 0, kCallComplete}, {2, 20, 10, 1, reader::kCallLeft}, {3, 31, 9, 1, kCallComplete}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(WaysOut, ACallThatWentOnIsStillMarkedSoWhenItEndsInATailCall) {
  const auto calls = rebuild({enter(10, 1), mark(20, Mark::kSwitched), place(kStackA), place(kStackB), enter(30, 2),
                              mark(40, Mark::kSwitched), place(kStackB + 64), place(kStackA), mark(50, Mark::kSwitched),
                              place(kStackA), place(kStackB + 64), leave(60, 12)});
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls.function[2], 2U);
  EXPECT_EQ(calls.marks[2], kCallOpenBegin | kCallResumed | reader::kCallLeft);
}

// Each would take hours if every exit, or every switch, were searched for.
TEST(WaysOut, HostileStacksTakeTimeByTheirEventsAlone) {
  constexpr std::uint64_t kMany = 400'000;
  std::vector<Event> deep{enter(1, 1), mark(2, Mark::kSwitched), place(kStackA), place(kStackB)};
  for (std::uint64_t i = 0; i < kMany; ++i) deep.push_back(enter(3 + i, 2));
  for (std::uint64_t i = 0; i < kMany; ++i) deep.push_back(leave(3 + kMany + i, 1));
  EXPECT_EQ(rebuild(deep).unmatched_exits, kMany);

  std::vector<Event> nested;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    nested.push_back(enter(2 * i + 1, 1));
    nested.insert(nested.end(), {mark(2 * i + 2, Mark::kSwitched), place(16 * i), place(16 * (i + kMany))});
  }
  EXPECT_EQ(rebuild(nested).size(), kMany);
}

TEST(WaysOut, ATailExitWithoutItsBegin) {
  EXPECT_EQ(rows(rebuild({{3, {leave(30, 12), enter(31, 3), leave(40, 3)}}})),
            (Rows{{2, 30, 0, 0, kCallOpenBegin | reader::kCallLeft}, {3, 31, 9, 0, kCallComplete}}));
}

TEST(WaysOut, SecondIdsOfFoldedFunctionsAreInTheFunctionsOrder) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  std::vector<reader::Function> functions(5);
  for (std::uint32_t i = 0; i < 5; ++i) {  // 1 and 2 have their address in common; 3, 4 and 5 are second ids there
    functions[i].id = i + 1;
    functions[i].tail_exit = i >= 2;
    functions[i].address = 0x1000;
  }
  writer.add_functions(0, functions);
  writer.add_block(0, 0, 0, 0, std::vector{enter(10, 2), leave(20, 4), enter(30, 1), leave(40, 3)});
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  const auto& read = trace->processes()[0].functions;
  EXPECT_EQ((std::vector{read[3].of, read[4].of, read[5].of}), (std::vector{1U, 2U, 2U}));
  const auto calls = rebuild_calls(*trace, trace->processes()[0].threads[0]);
  EXPECT_EQ(rows(calls), (Rows{{2, 10, 10, 0, reader::kCallLeft}, {1, 30, 10, 0, reader::kCallLeft}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(WaysOut, ATailCallIsLeftOrEndsAsItsCalleeComesBack) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  std::vector<reader::Function> functions(7);
  // 1 and 2 have their address in common; each has an id for calls that are left, and one for those that come back.
  for (std::uint32_t i = 0; i < 7; ++i) {
    functions[i].id = i + 1;
    functions[i].tail_exit = i >= 3;
    functions[i].tail_return = i == 4 || i == 6;
    functions[i].address = i == 2 ? 0x2000 : 0x1000;
  }
  writer.add_functions(0, functions);
  writer.add_block(0, 0, 0, 0,
                   std::vector{enter(10, 3), enter(20, 1), enter(30, 2), leave(40, 7), leave(50, 5), enter(60, 2),
                               leave(70, 6), enter(80, 1), leave(90, 4), leave(100, 3)});
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  const auto& read = trace->processes()[0].functions;
  EXPECT_EQ((std::vector{read[4].of, read[5].of, read[6].of, read[7].of}), (std::vector{1U, 1U, 2U, 2U}));
  const auto calls = rebuild_calls(*trace, trace->processes()[0].threads[0]);
  EXPECT_EQ(rows(calls), (Rows{{3, 10, 90, 0, kCallComplete},
                               {1, 20, 30, 1, kCallTail},
                               {2, 30, 10, 2, kCallTail},
                               {2, 60, 10, 1, reader::kCallLeft},
                               {1, 80, 10, 1, reader::kCallLeft}}));
  EXPECT_EQ(doubts(calls), 0U);
  EXPECT_EQ(reader::likely_end(calls, 3), 100U);  // by way of the next call, which was left as well
  EXPECT_EQ(reader::likely_end(calls, 4), 100U);  // its caller's end
  EXPECT_EQ(reader::likely_end(calls, 1), 50U);
}

TEST(WaysOut, ASecondIdWithoutItsFunctionIsReported) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  reader::Function f;
  f.id = 1;
  f.tail_exit = true;
  f.address = 0x1000;
  writer.add_functions(0, std::vector{f});
  writer.add_block(0, 0, 0, 0, std::vector{leave(10, 1)});
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(has_problem(*trace, "function 1 is a second id of one that is not there"));
  EXPECT_EQ(rebuild_calls(*trace, trace->processes()[0].threads[0]).marks[0], kCallOpenBegin);
}

TEST(WaysOut, AJumpEndsWhatBeganSinceItsPlaceWasSet) {
  const auto calls = rebuild({enter(10, 1), sets(kHome), enter(20, 2), enter(30, 3), mark(40, Mark::kJumped),
                              place(kHome), enter(50, 4), leave(60, 4), leave(70, 1)});
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 60, 0, kCallComplete},
                               {2, 20, 20, 1, kCallJumped},
                               {3, 30, 10, 2, kCallJumped},
                               {4, 50, 10, 1, kCallComplete}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(WaysOut, APlaceMayBeSetAgainWithTheSameStackPointer) {
  // 2 sets its place and returns; 3 has the same stack pointer one call deeper.
  const auto calls =
      rebuild({enter(10, 1), enter(20, 2), sets(kHome), leave(21, 2), enter(22, 4), enter(23, 3), sets(kHome),
               enter(24, 5), mark(25, Mark::kJumped), place(kHome), leave(26, 3), leave(27, 4), leave(28, 1)});
  EXPECT_EQ(calls.marks[4], kCallJumped);
  EXPECT_EQ(calls.marks[3], kCallComplete);
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(WaysOut, APlaceSetBeforeTheKeptHistoryLiesBelowAllThatIsKnown) {
  const auto calls = rebuild({{9, {enter(20, 2), enter(30, 3), mark(40, Mark::kJumped), place(kHome), leave(50, 1)}}});
  EXPECT_EQ(rows(calls),
            (Rows{{1, 20, 30, 0, kCallOpenBegin}, {2, 20, 20, 1, kCallJumped}, {3, 30, 10, 2, kCallJumped}}));
}

TEST(WaysOut, AJumpToAPlaceWhoseCallHasReturnedEndsNothing) {
  const auto calls = rebuild({enter(10, 1), enter(20, 2), sets(kHome), leave(30, 2), enter(35, 3),
                              mark(40, Mark::kJumped), place(kHome), leave(45, 3), leave(50, 1)});
  EXPECT_EQ(calls.strange_jumps, 1U);
  EXPECT_EQ(calls.missing_exits + calls.unmatched_exits, 0U);
  for (const std::uint8_t marks : calls.marks) EXPECT_EQ(marks, kCallComplete);
}

std::vector<Event> switches(std::uint64_t ticks, std::uint64_t from, std::uint64_t to) {
  return {mark(ticks, Mark::kSwitched), place(from), place(to)};
}
std::vector<Event> join(std::initializer_list<std::vector<Event>> parts) {
  std::vector<Event> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(WaysOut, CallsOnAnotherStackGoOnWhenTheThreadComesBack) {
  const auto calls = rebuild(join({{enter(10, 1)},
                                   switches(20, kHome, kStackA),
                                   {enter(21, 2), enter(22, 3)},
                                   switches(30, kStackA + 64, kHome),
                                   {enter(31, 4), leave(32, 4)},
                                   switches(40, kHome, kStackA + 64),
                                   {leave(41, 3), leave(42, 2)},
                                   {leave(50, 1)}}));  // the stack came to its end, unseen
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 40, 0, kCallComplete},
                               {2, 21, 9, 1, kCallOpenEnd | kCallSwitched},
                               {3, 22, 8, 2, kCallOpenEnd | kCallSwitched},
                               {4, 31, 1, 1, kCallComplete},
                               {2, 40, 2, 1, kCallOpenBegin | kCallResumed},
                               {3, 40, 1, 2, kCallOpenBegin | kCallResumed}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(WaysOut, FromStackToStackAndHomePastThem) {
  const auto calls = rebuild(join({{enter(10, 1)},
                                   switches(20, kHome, kStackA),
                                   {enter(21, 2)},
                                   switches(22, kStackA, kStackB),
                                   {enter(23, 3)},
                                   switches(24, kStackB, kHome),
                                   {leave(30, 1)}}));
  EXPECT_EQ(rows(calls), (Rows{{1, 10, 20, 0, kCallComplete},
                               {2, 21, 3, 1, kCallOpenEnd | kCallSwitched},
                               {3, 23, 1, 2, kCallOpenEnd | kCallSwitched}}));
  EXPECT_EQ(doubts(calls), 0U);
}

TEST(WaysOut, AfterACutAStackThatWasNotSeenIsNotPutAboveAnother) {
  const auto calls = rebuild({{5, join({{enter(10, 2)}, switches(20, kStackA, kHome), {enter(30, 3), leave(31, 3)}})}});
  EXPECT_EQ(rows(calls), (Rows{{2, 10, 10, 0, kCallOpenEnd | kCallSwitched}, {3, 30, 1, 0, kCallComplete}}));
}

TEST(WaysOut, AfterACutNoStackIsPutAboveAnother) {
  // From a stack whose begin is gone home, from there to a second one, and back home: home waits for the second, but so
  // it would look if the second waited for home.
  const auto calls = rebuild({{5, join({{enter(10, 2)},
                                        switches(20, kStackA, kHome),
                                        {enter(30, 3)},
                                        switches(40, kHome, kStackB),
                                        {enter(50, 4)},
                                        switches(60, kStackB, kHome),
                                        {leave(70, 3)}})}});
  EXPECT_EQ(rows(calls), (Rows{{2, 10, 10, 0, kCallOpenEnd | kCallSwitched},
                               {3, 30, 10, 0, kCallOpenEnd | kCallSwitched},
                               {4, 50, 10, 0, kCallOpenEnd | kCallSwitched},
                               {3, 60, 10, 0, kCallOpenBegin | kCallResumed}}));
}

TEST(WaysOut, AfterACutAReturnBehindASwitchOfStacksHoldsNoneOfTheCallsBefore) {
  const auto calls = rebuild({{5, join({{enter(10, 2), leave(11, 2), leave(12, 1)},
                                        switches(20, kStackA, kHome),
                                        {enter(30, 3), leave(31, 3), leave(40, 4)}})}});
  EXPECT_EQ(rows(calls),
            (Rows{{1, 10, 2, 0, kCallOpenBegin}, {2, 10, 1, 1, kCallComplete}, {3, 30, 1, 0, kCallComplete}}));
  EXPECT_EQ(calls.unmatched_exits, 1U);
}

TEST(WaysOut, ResumingCannotMakeMoreRowsThanTheFileIsWorth) {
  std::vector<Event> events;
  for (std::uint64_t i = 0; i < 2000; ++i) events.push_back(enter(i, 1));
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const bool there = i % 2 == 0;
    for (const Event e : switches(3000 + i, there ? kStackA : kHome, there ? kHome : kStackA)) events.push_back(e);
  }
  // The first switch goes to a stack that is new: its frames wait below, and come back without new rows. Make it a cut
  // history, where each stack is put aside.
  const auto calls = rebuild({{5, events}});
  EXPECT_GT(calls.beyond_limit, 0U);
  EXPECT_LT(calls.size(), 200'000U);
}

TEST(WaysOut, WhatRunsAtTheEndIsOpenUntilThreadOrProcessEnded) {
  for (const std::uint64_t exited : {0U, 300U}) {
    Bytes bytes;
    auto writer = writing::TraceWriter::to_memory(bytes);
    reader::Process process;
    process.end_ticks = 500;
    reader::Thread thread;
    thread.exited = exited != 0;
    thread.exited_ticks = exited;
    writer.add_processes(std::span(&process, 1));
    writer.add_functions(0, std::vector<reader::Function>(1, [] {
                           reader::Function f;
                           f.id = 1;
                           return f;
                         }()));
    writer.add_threads(0, std::span(&thread, 1));
    writer.add_block(0, 0, 0, 0, std::vector{enter(10, 1)});
    writer.add_block(0, 0, 4, 0, std::vector{enter(20, 1), enter(30, 1), leave(40, 1)});
    ASSERT_TRUE(writer.finish().ok());
    auto trace = reader::Trace::open_memory(bytes, "t");
    ASSERT_TRUE(trace.ok());
    const auto calls = rebuild_calls(*trace, trace->processes()[0].threads[0]);
    const std::uint64_t end = exited != 0 ? exited : 500;
    EXPECT_EQ(rows(calls), (Rows{{1, 10, 0, 0, kCallOpenEnd},  // a gap follows: it may have ended there
                                 {1, 20, end - 20, 0, kCallOpenEnd},
                                 {1, 30, 10, 1, kCallComplete}}));
    EXPECT_EQ(calls.last_ticks, 40U);
  }
}

// Words of all kinds at random: whatever they say, the promises of the columns hold.
TEST(WaysOut, AnyWordsMakeATree) {
  std::mt19937 random(7);
  const auto below = [&random](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
  for (int round = 0; round < 300; ++round) {
    std::vector<Block> blocks;
    std::uint64_t now = 4000;
    for (std::uint64_t sequence = below(2); sequence < 6; ++sequence) {
      if (below(5) == 0) continue;
      std::vector<Event> events;
      for (unsigned n = below(60); n != 0; --n) {
        now += below(3);
        if (round % 2 == 1 && below(8) == 0) now -= below(40);  // the clock runs backwards
        const std::uint64_t stack = kHome + std::uint64_t{16} * below(4);
        switch (below(8)) {
          case 0:
            events.push_back(mark(now, Mark::kUnwound));
            break;
          case 1:
            events.push_back(below(2) != 0 ? place(stack) : sets(stack));
            break;
          case 2:
            events.push_back(mark(now, Mark::kJumped));
            if (below(4) != 0) events.push_back(place(stack));
            break;
          case 3:
            for (const Event e : switches(now, stack, kHome + std::uint64_t{16} * below(4))) events.push_back(e);
            break;
          case 4:
          case 5:
            events.push_back(enter(now, 1 + below(3)));
            break;
          default:
            events.push_back(leave(now, 1 + below(3) + (below(4) == 0 ? 10 : 0)));
        }
      }
      blocks.push_back({sequence, events});
    }
    if (blocks.empty()) continue;
    const auto calls = rebuild(blocks);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::uint32_t parent = calls.parent[i];
      ASSERT_TRUE(parent == reader::kNoParent || parent < i);
      ASSERT_EQ(calls.depth[i], parent == reader::kNoParent ? 0 : calls.depth[parent] + 1);
    }
    const auto column = [](const auto& of) { return std::span(of.begin(), of.end()); };
    ASSERT_TRUE(reader::times_in_order(column(calls.begin), column(calls.duration), column(calls.parent)));
    if (round % 2 == 1) continue;
    ASSERT_EQ(calls.out_of_order, 0U);
  }
}

}  // namespace
}  // namespace karst::test
