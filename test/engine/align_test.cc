// Two flows aligned: pairs against a naive search, trees against what they were made from.
#include "engine/api/align.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "columns/flame.h"
#include "engine/api/compare.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using engine::AlignedCall;
using engine::AlignItem;
using test::SampleTrace;

// The most time in common, by trying everything.
double naive(const std::vector<AlignItem>& a, const std::vector<AlignItem>& b, std::size_t i = 0, std::size_t j = 0) {
  if (i == a.size() || j == b.size()) return 0;
  double best = std::max(naive(a, b, i + 1, j), naive(a, b, i, j + 1));
  if (a[i].name == b[j].name) {
    best = std::max(best, std::max(std::min(a[i].duration, b[j].duration), 0.5) + naive(a, b, i + 1, j + 1));
  }
  return best;
}

TEST(Align, PairsHaveTheMostTimeInCommon) {
  std::mt19937 random(3);
  const auto list = [&](std::size_t most) {
    std::vector<AlignItem> items(random() % most);
    for (AlignItem& item : items) item = {static_cast<std::uint32_t>(random() % 3), static_cast<double>(random() % 9)};
    return items;
  };
  for (int round = 0; round < 300; ++round) {
    const auto a = list(7);
    const auto b = list(7);
    double sum = 0;
    std::int64_t last[2] = {-1, -1};
    for (const auto& [i, j] : engine::pair_up(a, b)) {
      ASSERT_GT(i, last[0]);
      ASSERT_GT(j, last[1]);
      last[0] = i;
      last[1] = j;
      ASSERT_EQ(a[i].name, b[j].name);
      sum += std::max(std::min(a[i].duration, b[j].duration), 0.5);
    }
    ASSERT_DOUBLE_EQ(sum, naive(a, b)) << round;
  }
}

struct Two {
  SampleTrace samples[2];
  std::unique_ptr<engine::TraceIndex> index[2];
  std::vector<std::string> extra;
  std::vector<std::uint32_t> names[2];

  engine::Alignment aligned(double share, std::uint32_t row_a = reader::kNoParent,
                            std::uint32_t row_b = reader::kNoParent) {
    for (int side = 0; side < 2; ++side) {
      if (index[side] == nullptr) index[side] = test::index_of(samples[side]);
    }
    extra.clear();
    engine::AlignSide sides[2];
    for (int side = 0; side < 2; ++side) {
      names[side] = engine::common_names(*index[0], *index[side], extra);
      const engine::ThreadIndex& thread = index[side]->threads()[0];
      sides[side] = {index[side].get(), &thread, thread.calls, side == 0 ? row_a : row_b, &names[side]};
    }
    return engine::align(sides[0], sides[1], share);
  }
};

// name(a begin+duration, b begin+duration) of all calls, in order.
std::string words(const Two& two, const engine::Alignment& found) {
  std::string text;
  for (std::size_t i = 1; i < found.calls.size(); ++i) {
    const AlignedCall& call = found.calls[i];
    const auto& functions = two.index[0]->functions().functions();
    text += call.name < functions.size() ? functions[call.name].name : two.extra[call.name - functions.size()];
    for (int side = 0; side < 2; ++side) {
      text += side == 0 ? "(" : ", ";
      text += call.has[side] ? std::to_string(static_cast<int>(call.begin[side])) + "+" +
                                   std::to_string(static_cast<int>(call.duration[side]))
                             : "-";
    }
    text += ") ";
  }
  return text;
}

TEST(Align, WhatOnlyOneSideHasStandsInItsPlace) {
  Two two;
  two.samples[0].process(1, "a", {"load", "parse", "draw"}).thread(1, "main");
  two.samples[0].call(1, 1000, 1100).enter(2, 1200).call(3, 1210, 1230).exit(2, 1300).call(3, 1400, 1500);
  // Functions have other numbers there; `wait` is new, `load` takes longer.
  two.samples[1].process(1, "b", {"draw", "wait", "parse", "load"}).thread(1, "main");
  two.samples[1].call(4, 5000, 5300).call(2, 5310, 5400).enter(3, 5410).exit(3, 5500).call(1, 5600, 5700);
  const engine::Alignment found = two.aligned(0.001);
  EXPECT_EQ(words(two, found),
            "load(0+100, 0+300) wait(-, 310+90) parse(200+100, 410+90) draw(400+100, 600+100) draw(210+20, -) ");
  EXPECT_EQ(found.calls[0].duration[0], 500);
  EXPECT_EQ(found.calls[0].duration[1], 700);
  EXPECT_FALSE(found.truncated);
}

TEST(Align, ALongCallFindsItsShortPartner) {
  Two two;
  two.samples[0].process(1, "a", {"f", "g"}).thread(1, "main");
  two.samples[0].call(1, 1000, 1003).call(2, 1010, 2000);
  two.samples[1].process(1, "b", {"f", "g"}).thread(1, "main");
  two.samples[1].call(1, 1000, 1900).call(2, 1910, 1912);
  EXPECT_EQ(words(two, two.aligned(0.1)), "f(0+3, 0+900) g(10+990, 910+2) ");
  EXPECT_EQ(two.aligned(1).calls.size(), 1U);  // nothing is as long as all
}

TEST(Align, ATraceIsEqualToItself) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    Two two;
    for (auto& sample : two.samples) test::fill_random(sample, {.seed = seed, .threads = 1, .calls = 800});
    const engine::Alignment found = two.aligned(0.00001);
    EXPECT_GT(found.calls.size(), 100U);
    for (const AlignedCall& call : found.calls) {
      EXPECT_TRUE(call.has[0] && call.has[1]);
      EXPECT_EQ(call.row[0], call.row[1]);
      EXPECT_EQ(call.begin[0], call.begin[1]);
    }
  }
}

TEST(Align, PairsHaveCallersThatArePairsAndStandInOrder) {
  Two two;
  test::fill_random(two.samples[0], {.seed = 5, .threads = 1, .calls = 900});
  test::fill_random(two.samples[1], {.seed = 6, .threads = 1, .calls = 900});
  const engine::Alignment found = two.aligned(0.0001);
  std::vector<double> last[2] = {std::vector<double>(found.calls.size(), -1),
                                 std::vector<double>(found.calls.size(), -1)};
  for (std::size_t i = 1; i < found.calls.size(); ++i) {
    const AlignedCall& call = found.calls[i];
    ASSERT_LT(call.parent, static_cast<std::int64_t>(i));
    const auto parent = static_cast<std::size_t>(call.parent);
    EXPECT_TRUE(call.has[0] || call.has[1]);
    for (int side = 0; side < 2; ++side) {
      if (!call.has[side]) continue;
      EXPECT_TRUE(found.calls[parent].has[side]);
      const auto& calls = two.index[side]->threads()[0].calls;
      EXPECT_EQ(calls.parent[call.row[side]], found.calls[parent].row[side]);
      EXPECT_GE(call.begin[side], last[side][parent]);
      last[side][parent] = call.begin[side];
    }
  }
}

TEST(Align, StopsWhenToldTo) {
  Two two;
  for (auto& sample : two.samples) test::fill_random(sample, {.seed = 1, .threads = 1, .calls = 100});
  (void)two.aligned(0.1);
  engine::Work work;
  work.stop = true;
  const engine::ThreadIndex& thread = two.index[0]->threads()[0];
  const engine::AlignSide side{two.index[0].get(), &thread, thread.calls, reader::kNoParent, &two.names[0]};
  EXPECT_EQ(engine::align(side, side, 0.00001, &work).calls.size(), 1U);
}

}  // namespace
}  // namespace karst
