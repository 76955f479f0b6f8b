// A least duration: which calls a reader leaves out, as the traced process would have if it could.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reader/trace.h"
#include "test/reader/small_trace.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

using format::Event;
using format::Mark;
using namespace reader;

constexpr std::uint64_t kLeast = 100;

Event enter(std::uint64_t ticks, std::uint32_t id) { return format::make_event(ticks, false, id); }
Event leave(std::uint64_t ticks, std::uint32_t id) { return format::make_event(ticks, true, id); }

/// "1(2)" for a call of 1 with one of 2 in it; -: open.
std::string shown(const Calls& calls) {
  std::string text;
  std::size_t depth = 0;
  for (std::size_t row = 0; row < calls.size(); ++row) {
    for (; depth > calls.depth[row]; --depth) text += ')';
    if (depth < calls.depth[row]) text += '(', ++depth;
    text += ' ' + std::to_string(calls.function[row]);
    if (call_is_open(calls.marks[row])) text += '-';
  }
  return text + std::string(depth, ')');
}

Calls rebuild(const std::vector<std::vector<Event>>& blocks, std::uint64_t least = kLeast,
              std::uint32_t inherited = 0) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  std::vector<Function> functions;
  for (std::uint32_t id = 1; id <= 8; ++id) {
    Function f;
    f.id = id;
    f.tail_exit = id > 4;  // 5 is the second id of 1, and so on
    f.address = 0x1000 + (id - 1) % 4 * 16;
    functions.push_back(f);
  }
  Process process;
  process.min_duration_ticks = least;
  writer.add_processes({&process, 1});
  writer.add_functions(0, functions);
  Thread thread;
  thread.inherited = inherited;
  writer.add_threads(0, {&thread, 1});
  writer.add_mode(process);
  std::uint64_t sequence = 0;
  for (const auto& events : blocks) writer.add_block(0, 0, sequence++, 0, events);
  EXPECT_TRUE(writer.finish().ok());
  const auto trace = Trace::open_memory(bytes, "t");
  EXPECT_TRUE(trace.ok());
  EXPECT_EQ(trace->processes().at(0).min_duration_ticks, least);
  return rebuild_calls(*trace, trace->processes().at(0).threads.at(0));
}

TEST(LeastDuration, ShortCallsThatContainNothingAreNoRows) {
  const Calls calls = rebuild({{enter(0, 1), enter(10, 2), enter(20, 3)},
                               {leave(30, 3), leave(40, 2), enter(50, 2), leave(160, 2), enter(170, 3)},
                               {leave(180, 3), leave(190, 1)}});
  EXPECT_EQ(shown(calls), " 1( 2)");
  EXPECT_EQ(calls.begin[1], 50U);
  EXPECT_EQ(calls.short_calls, 3U);
}

TEST(LeastDuration, ACallIsLongEnoughAtTheLimit) {
  EXPECT_EQ(shown(rebuild({{enter(0, 1), leave(100, 1), enter(100, 2), leave(199, 2)}})), " 1");
}

TEST(LeastDuration, WithoutOneAllStay) {
  const Calls calls = rebuild({{enter(0, 1), enter(10, 2), leave(10, 2), leave(12, 1)}}, 0);
  EXPECT_EQ(shown(calls), " 1( 2)");
  EXPECT_EQ(calls.short_calls, 0U);
}

TEST(LeastDuration, TailCallsAreReturns) {
  EXPECT_EQ(shown(rebuild({{enter(0, 1), leave(10, 5), enter(10, 2), leave(200, 6)}})), " 2");
}

TEST(LeastDuration, CallsThatEndOtherwiseStay) {
  EXPECT_EQ(
      shown(rebuild({{enter(0, 1), enter(10, 2), format::make_mark(11, Mark::kUnwound), leave(12, 2), leave(13, 1)}})),
      " 1( 2)");
  EXPECT_EQ(shown(rebuild({{enter(0, 1)}})), " 1-");
}

TEST(LeastDuration, ACallThatSetAPlaceToJumpToStays) {
  const Calls calls = rebuild({{enter(0, 1), format::make_place(0x7000, Mark::kSetPlace), leave(5, 1), enter(6, 2),
                                enter(7, 3), leave(8, 3), format::make_place(0x6000, Mark::kSetPlace), enter(9, 4),
                                format::make_mark(10, Mark::kJumped), format::make_place(0x6000), leave(11, 2)}});
  EXPECT_EQ(shown(calls), " 1 2( 4)");
  EXPECT_EQ(calls.strange_jumps, 0U);
}

TEST(LeastDuration, WhatAForkedChildIsInsideStays) {
  EXPECT_EQ(
      shown(rebuild({{enter(0, 1), enter(1, 2)}, {enter(10, 3), leave(11, 3), leave(12, 2), leave(13, 1)}}, kLeast, 2)),
      " 1( 2)");
}

}  // namespace
}  // namespace karst::test
