// api/memory against a naive count: of each allocation within a call, whether anybody freed its address before the end.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/api/api.h"
#include "engine/api/memory.h"
#include "format/memory.h"
#include "format/note.h"
#include "format/values.h"
#include "test/engine/cached_index.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

constexpr std::uint32_t kOuter = 1, kInner = 2, kMalloc = 3, kFree = 4, kSampledMean = 5;
constexpr std::uint64_t kNeverFreed = std::numeric_limits<std::uint64_t>::max();

std::string packed(const std::vector<std::uint64_t>& numbers) {
  std::string bytes;
  for (std::uint64_t number : numbers) {
    std::string own;
    for (; number != 0; number >>= 8) own += static_cast<char>(number);
    bytes += static_cast<char>(own.size()) + own;
  }
  return bytes + static_cast<char>(format::kValuesEnd);
}

struct Block {
  std::uint32_t thread, function;
  std::uint64_t ticks, size, address, freed = kNeverFreed;
};
struct Interval {
  std::uint32_t thread, row;
  std::uint64_t begin, end;
};

// Threads that call, take and free, also what others took; one at a time, so that the order is known.
struct RandomMemory {
  explicit RandomMemory(std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    constexpr std::uint32_t kThreads = 3;
    sample.process(1, "app", {"outer", "inner", "malloc", "free"});
    sample.notes(kMalloc, format::kAllocated).notes(kFree, format::kFreed);
    std::vector<std::vector<std::size_t>> open(kThreads);
    std::vector<std::uint32_t> rows(kThreads);
    std::vector<std::vector<std::function<void()>>> said(kThreads);
    std::uint64_t now = 1000;
    for (int step = 0; step < 600; ++step) {
      now += 5;
      const std::uint32_t i = below(kThreads);
      const auto say = [&, i](auto what) { said[i].push_back(what); };
      if (open[i].empty() || (below(4) == 0 && open[i].size() < 6)) {
        const std::uint32_t function = open[i].empty() ? kOuter : kInner;
        open[i].push_back(calls.size());
        calls.push_back({i, rows[i]++, now, 0});
        say([this, function, now] { sample.enter(function, now); });
      } else if (below(4) == 0) {
        calls[open[i].back()].end = now;
        open[i].pop_back();
        say([this, function = open[i].empty() ? kOuter : kInner, now] { sample.exit(function, now); });
      } else if (below(2) == 0 || living.empty()) {
        const std::uint64_t size = 1 + below(1000);
        // Addresses come back.
        std::uint64_t address = 0x1000 + below(40) * 0x10;
        while (living.contains(address)) address += 0x10;
        living[address] = blocks.size();
        blocks.push_back({i, open[i].size() == 1 ? kOuter : kInner, now, size, address});
        say([this, size, address, now] {
          sample.values(format::NoteKind::kRecord, kMalloc, packed({size, address}), now);
        });
      } else {
        const auto of = std::next(living.begin(), below(static_cast<std::uint32_t>(living.size())));
        blocks[of->second].freed = now;
        say([this, address = of->first, now] {
          sample.values(format::NoteKind::kRecord, kFree, packed({address}), now);
        });
        living.erase(of);
      }
    }
    for (std::uint32_t i = 0; i < kThreads; ++i) {
      sample.thread(i + 1, "app");
      for (const auto& each : said[i]) each();
      for (; !open[i].empty(); open[i].pop_back()) {
        calls[open[i].back()].end = now += 5;
        sample.exit(open[i].size() == 1 ? kOuter : kInner, now);
      }
    }
  }
  test::SampleTrace sample;
  std::vector<Block> blocks;
  std::vector<Interval> calls;
  std::map<std::uint64_t, std::size_t> living;
};

class MemoryOfCall : public testing::TestWithParam<std::uint32_t> {};

TEST_P(MemoryOfCall, IsWhatItTookAndWhatWasLeft) {
  RandomMemory made(GetParam());
  const auto index = test::index_of(made.sample);
  const test::CachedIndex cached(made.sample, "memory-of-call");
  engine::Api api({index.get()}, "0");
  engine::Api of_cached({cached.get()}, "0");
  simdjson::dom::parser parser;
  std::uint64_t taken_in_all = 0;
  for (const Interval& call : made.calls) {
    const engine::Parameters asked = {{"thread", std::to_string(call.thread)}, {"index", std::to_string(call.row)}};
    const engine::Reply reply = api.answer("memory", asked);
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body, of_cached.answer("memory", asked).body);
    std::uint64_t count = 0, bytes = 0, left = 0, left_bytes = 0;
    std::map<std::uint32_t, std::uint64_t> by_function;
    for (const Block& block : made.blocks) {
      if (block.thread != call.thread || block.ticks < call.begin || block.ticks > call.end) continue;
      ++count;
      bytes += block.size;
      by_function[block.function] += block.size;
      if (block.freed <= call.end) continue;
      ++left;
      left_bytes += block.size;
    }
    taken_in_all += count;
    const simdjson::dom::element answer = parser.parse(reply.body);
    EXPECT_EQ(std::uint64_t(answer["allocations"]), count);
    EXPECT_EQ(std::uint64_t(answer["bytes"]), bytes);
    EXPECT_EQ(std::uint64_t(answer["left"]), left);
    EXPECT_EQ(std::uint64_t(answer["left_bytes"]), left_bytes);
    EXPECT_EQ(std::uint64_t(answer["unknown"]), 0U);
    EXPECT_EQ(answer["functions"]["function"].get_array().size(), by_function.size());
    std::uint64_t before = kNeverFreed;
    for (std::size_t i = 0; i < by_function.size(); ++i) {
      const std::uint64_t function = answer["functions"]["function"].at(i);
      const std::uint64_t taken = answer["functions"]["bytes"].at(i);
      EXPECT_EQ(taken, by_function[index->functions().functions()[function].name == "outer" ? kOuter : kInner]);
      EXPECT_LE(taken, before);
      before = taken;
    }
  }
  EXPECT_GT(taken_in_all, 100U);
}
INSTANTIATE_TEST_SUITE_P(Seeds, MemoryOfCall, testing::Range(1U, 21U));

TEST(MemoryOfCallAnswers, SayWhenThereAreNone) {
  test::SampleTrace sample;
  sample.process(1, "app", {"main"}).thread(1, "app").call(1, 1000, 2000);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "0");
  EXPECT_EQ(api.answer("memory", {{"thread", "0"}, {"index", "0"}}).status, 404);
  EXPECT_EQ(api.answer("memory", {}).status, 400);
  EXPECT_EQ(api.answer("memory", {{"thread", "0"}, {"index", "1"}}).status, 400);
  EXPECT_NE(api.answer("trace", {}).body.find("\"memory\":false"), std::string::npos);
}

TEST(MemoryOfCallAnswers, WhatTheCallerTakesAtThatVeryTickIsNotTheCalls) {
  test::SampleTrace sample;
  sample.process(1, "app", {"outer", "inner", "malloc", "free"});
  sample.notes(kMalloc, format::kAllocated).notes(kFree, format::kFreed);
  sample.thread(1, "app").enter(kOuter, 1000);
  sample.values(format::NoteKind::kRecord, kMalloc, packed({10, 0x10}), 1100).call(kInner, 1100, 1200);
  sample.values(format::NoteKind::kRecord, kMalloc, packed({20, 0x20}), 1200).exit(kOuter, 2000);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "0");
  simdjson::dom::parser parser;
  const simdjson::dom::element inner = parser.parse(api.answer("memory", {{"thread", "0"}, {"index", "1"}}).body);
  EXPECT_EQ(std::uint64_t(inner["allocations"]), 0U);
  const simdjson::dom::element outer = parser.parse(api.answer("memory", {{"thread", "0"}, {"index", "0"}}).body);
  EXPECT_EQ(std::uint64_t(outer["bytes"]), 30U);
}

TEST(MemoryOfCallAnswers, AreEstimatesWhereItWasSampled) {
  test::SampleTrace sample;
  sample.process(1, "app", {"outer", "inner", "malloc", "free", "1000"});
  sample.notes(kMalloc, format::kAllocated).notes(kFree, format::kFreed).notes(kSampledMean, format::kSampled);
  sample.thread(1, "app").enter(kOuter, 1000);
  sample.values(format::NoteKind::kRecord, kMalloc, packed({1000, 0x10}), 1100).exit(kOuter, 2000);
  const auto index = test::index_of(sample);
  engine::Api api({index.get()}, "0");
  simdjson::dom::parser parser;
  const simdjson::dom::element answer = parser.parse(api.answer("memory", {{"thread", "0"}, {"index", "0"}}).body);
  EXPECT_EQ(std::uint64_t(answer["sampled"]), 1000U);
  EXPECT_EQ(std::uint64_t(answer["bytes"]), 1582U);  // 1000 / (1 - 1 / e)
  EXPECT_EQ(std::uint64_t(answer["left_bytes"]), 1582U);
  EXPECT_GT(std::uint64_t(answer["bytes_margin"]), 1000U);
}

}  // namespace
}  // namespace karst
