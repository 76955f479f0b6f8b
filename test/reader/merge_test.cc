// Several traces in one: times on one clock, and nothing else changed.
#include "write/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "test/reader/small_trace.h"
#include "write/synthetic.h"
#include "write/tick_map.h"

namespace karst::test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// A machine that began so many seconds after 2020; its clock goes on by `rate` a second.
struct Machine {
  std::uint64_t began_s;
  std::uint64_t rate;
  std::uint64_t first_ticks;  ///< as it began

  std::uint64_t ticks(double seconds) const {
    return first_ticks + static_cast<std::uint64_t>(seconds * static_cast<double>(rate));
  }
  reader::ClockPair pair(double seconds) const {
    const auto ns = static_cast<std::uint64_t>(seconds * 1e9);
    return {ticks(seconds), ns, (1'577'836'800 + began_s) * kSecond + ns, 100};
  }
  reader::Clock clock(double from, double to) const { return {rate, 1, {pair(from), pair(to)}}; }
};

constexpr Machine kOld{0, 1'000'000'000, 0};
constexpr Machine kOther{4000, 2'500'000'000, 77'000};

Bytes trace_of(const reader::Clock& clock, std::uint32_t pid, const std::vector<format::Event>& events,
               std::uint64_t block_ticks) {
  SmallTrace small = small_values();
  small.process.pid = pid;
  small.process.switches.clear();
  small.process.threads.resize(1);
  small.process.threads[0].joined_ticks = block_ticks;
  small.process.threads[0].overwritten_events = small.process.threads[0].lost_events = 0;
  small.process.moments.resize(1);
  small.process.moments[0].number = 1;
  small.process.moments[0].begin_ticks = block_ticks;
  small.process.moments[0].end_ticks = block_ticks + 10;
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writer.add_processes({&small.process, 1});
  writer.add_clock(clock);
  writer.add_modules(0, small.process.modules);
  writer.add_functions(0, small.process.functions);
  writer.add_symbols(0, small.process.functions);
  writer.add_threads(0, small.process.threads);
  writer.add_moments(0, small.process.moments);
  writer.add_cost(small.process);
  writer.add_block(0, 0, 3, block_ticks, events);
  writer.add_source("/home/me/app.cc", "of " + std::to_string(pid));
  (void)writer.finish();
  return bytes;
}

reader::Trace opened(const Bytes& bytes) {
  auto trace = reader::Trace::open_memory(bytes, "merged");
  EXPECT_TRUE(trace.ok());
  EXPECT_EQ(all_problems(*trace), "");
  return std::move(*trace);
}

Bytes merged(const reader::Trace& a, const reader::Trace& b, writing::LeftOut* left_out = nullptr) {
  const auto aligned = writing::align(a.clock(), b.clock());
  EXPECT_TRUE(aligned.ok());
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  auto made = writing::write_merged({{&a, {}}, {&b, aligned->map}}, writer);
  EXPECT_TRUE(made.ok());
  if (left_out != nullptr) *left_out = *made;
  EXPECT_TRUE(writer.finish().ok());
  return bytes;
}

TEST(Merge, ClocksOfOneMachineAreTheSame) {
  const auto aligned = writing::align(kOld.clock(100, 200), kOld.clock(5000, 5001));
  ASSERT_TRUE(aligned.ok());
  EXPECT_TRUE(aligned->same_clock);
  EXPECT_TRUE(aligned->map.is_same());
  // Its rate was measured a little differently, and its wall clock is kept right.
  reader::Clock later = kOld.clock(5000, 5001);
  later.ticks_per_second += 20'000;
  for (auto& pair : later.pairs) pair.realtime_ns += 30'000'000;
  EXPECT_TRUE(writing::align(kOld.clock(100, 200), later)->same_clock);
}

TEST(Merge, AnotherStartIsAnotherClock) {
  const Machine again{kOld.began_s + 300, kOld.rate, 0};
  const auto aligned = writing::align(kOld.clock(100, 200), again.clock(10, 20));
  ASSERT_TRUE(aligned.ok());
  EXPECT_FALSE(aligned->same_clock);
  EXPECT_EQ(aligned->map.at(again.ticks(12)), kOld.ticks(312));
  EXPECT_LE(aligned->off_by_ns, 300U);
}

TEST(Merge, TimesOfAnotherMachineGoByTheWallClock) {
  const auto aligned = writing::align(kOld.clock(4000, 5000), kOther.clock(500, 600));
  ASSERT_TRUE(aligned.ok());
  EXPECT_FALSE(aligned->same_clock);
  EXPECT_EQ(aligned->map.at(kOther.ticks(550)), kOld.ticks(4550));
  EXPECT_EQ(aligned->map.length(kOther.rate), kOld.rate);
  EXPECT_EQ(aligned->map.at(0), 0U);  // stands for none
}

TEST(Merge, WhatStraysIsSaidAndWhatCannotBeIsRefused) {
  reader::Clock slewed = kOther.clock(500, 600);
  slewed.pairs[1].realtime_ns += 4'000'000;
  EXPECT_NEAR(static_cast<double>(writing::align(kOld.clock(4000, 5000), slewed)->off_by_ns), 4e6, 1000);
  slewed.pairs[1].realtime_ns += 2 * kSecond;
  EXPECT_FALSE(writing::align(kOld.clock(4000, 5000), slewed).ok());
  reader::Clock none = kOther.clock(500, 600);
  none.pairs[0].realtime_ns = 0;
  EXPECT_FALSE(writing::align(kOld.clock(4000, 5000), none).ok());
  EXPECT_FALSE(writing::align({}, kOther.clock(500, 600)).ok());
  // Before the first one's clock began.
  EXPECT_FALSE(writing::align(kOther.clock(500, 600), kOld.clock(100, 200)).ok());
}

TEST(Merge, MapsKeepTheOrderOfHostileTimes) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const writing::TickMap map(random() >> random() % 64, 1 + (random() >> random() % 64), random() >> random() % 64,
                               1 + (random() >> random() % 64));
    std::uint64_t before = 1;
    for (const std::uint64_t ticks : {std::uint64_t{1}, std::uint64_t{1} << 20U, std::uint64_t{1} << 50U,
                                      std::uint64_t{1} << 63U, ~std::uint64_t{0}}) {
      EXPECT_GE(map.at(ticks), before);
      before = map.at(ticks);
    }
  }
}

TEST(Merge, CallsOfAnotherMachineKeepTheirLengths) {
  // The upper bits of the merged clock change within the block: 2^40 ticks are 1099.5 s.
  const double edge = static_cast<double>(std::uint64_t{1} << 40U) / static_cast<double>(kOld.rate);
  const double at = 4 * edge - static_cast<double>(kOther.began_s);
  const std::uint64_t begin = kOther.ticks(at) - 2'500;
  ASSERT_EQ(begin & ~format::kEventTickMask, (begin + 7'500) & ~format::kEventTickMask);
  const std::vector<format::Event> events{enter(begin, 1),
                                          enter(begin + 250, 2),
                                          leave(begin + 750, 2),
                                          enter(begin + 2'000, 3),
                                          format::make_mark(begin + 5'000, format::Mark::kUnwound),
                                          leave(begin + 5'000, 3),
                                          leave(begin + 7'500, 1)};
  const std::uint64_t first = kOld.ticks(4300);
  const Bytes a = trace_of(kOld.clock(4000, 4400), 1, {enter(first, 2), leave(first + 500, 2)}, first);
  const Bytes b = trace_of(kOther.clock(100, 500), 2, events, begin);
  const reader::Trace one = opened(a), other = opened(b);
  writing::LeftOut left_out;
  const Bytes bytes = merged(one, other, &left_out);
  const reader::Trace whole = opened(bytes);
  EXPECT_EQ(left_out.sources, 1U);
  ASSERT_EQ(whole.processes().size(), 2U);
  EXPECT_EQ(whole.processes()[1].pid, 2U);
  EXPECT_EQ(whole.processes()[1].moments[0].number, 2U);
  // 2.5 ticks of the one are one of the other.
  EXPECT_EQ(whole.processes()[1].cost.call, small_values().process.cost.call * 2 / 5);
  EXPECT_EQ(whole.processes()[1].functions[2].name, "ns::work(int)");
  const reader::Calls calls = reader::rebuild_calls(whole, whole.processes()[1].threads[0]);
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls.duration[0], 3'000U);
  EXPECT_EQ(calls.duration[1], 200U);
  EXPECT_EQ(calls.duration[2], 1'200U);
  EXPECT_EQ(calls.marks[2], reader::kCallUnwound);
  EXPECT_NEAR(static_cast<double>(calls.begin[0]), static_cast<double>(std::uint64_t{4} << 40U) - 1'000, 2);
  EXPECT_EQ(calls.missing_blocks, 0U);
  const auto blocks = whole.blocks(whole.processes()[1].threads[0]);
  EXPECT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks.front().sequence, 3U);  // what was overwritten before stays so
  EXPECT_EQ(reader::rebuild_calls(whole, whole.processes()[0].threads[0]).begin[0], first);
}

TEST(Merge, BlocksOfTheSameClockAreTheSame) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writing::SyntheticTrace wanted;
  wanted.events = 100'000;
  wanted.threads = 3;
  wanted.dropped_blocks = 1;
  writing::add_synthetic(writer, wanted);
  ASSERT_TRUE(writer.finish().ok());
  const reader::Trace one = opened(bytes);
  Bytes out;
  auto whole_writer = writing::TraceWriter::to_memory(out);
  ASSERT_TRUE(writing::write_merged({{&one, {}}, {&one, {}}}, whole_writer).ok());
  ASSERT_TRUE(whole_writer.finish().ok());
  const reader::Trace whole = opened(out);
  reader::EventReader read = whole.event_reader(), read_wanted = one.event_reader();
  EXPECT_EQ(whole.event_count(), 2 * one.event_count());
  for (const reader::Process& process : whole.processes()) {
    for (std::size_t t = 0; t < process.threads.size(); ++t) {
      const auto blocks = whole.blocks(process.threads[t]), wanted_blocks = one.blocks(one.processes()[0].threads[t]);
      ASSERT_EQ(blocks.size(), wanted_blocks.size());
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        EXPECT_EQ(blocks[i].sequence, wanted_blocks[i].sequence);
        const auto events = read(blocks[i]).events, wanted_events = read_wanted(wanted_blocks[i]).events;
        EXPECT_TRUE(std::equal(events.begin(), events.end(), wanted_events.begin(), wanted_events.end()));
      }
    }
  }
}

TEST(Merge, StatesAreOfOneMachine) {
  const Bytes small = small_trace();
  const reader::Trace one = opened(small);
  const Bytes of_other = trace_of(kOther.clock(100, 500), 2, {enter(kOther.ticks(200), 2)}, kOther.ticks(200));
  const reader::Trace other = opened(of_other);
  const auto merge = [](const reader::Trace& a, const reader::Trace& b, writing::LeftOut& left_out) {
    Bytes bytes;
    auto writer = writing::TraceWriter::to_memory(bytes);
    left_out = *writing::write_merged({{&a, {}}, {&b, {}}}, writer);
    EXPECT_TRUE(writer.finish().ok());
    return opened(bytes).states().empty();
  };
  writing::LeftOut left_out;
  EXPECT_FALSE(merge(other, one, left_out));
  EXPECT_TRUE(left_out.states.empty());
  EXPECT_TRUE(merge(one, one, left_out));  // its threads could not be told apart
  EXPECT_EQ(left_out.states.size(), 2U);
}

}  // namespace
}  // namespace karst::test
