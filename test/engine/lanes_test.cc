// The pyramid against a count without one.
#include "engine/index/lanes.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "engine/tiles/tiles.h"
#include "reader/held_times.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using engine::Picture;
using engine::Slice;

// docs/viewer-protocol.md, api/tiles, word by word.
std::vector<Slice> naive_slices(const engine::CallColumns& calls, std::uint32_t depth, const Picture& picture) {
  std::vector<Slice> slices;
  std::map<std::uint32_t, Slice> pixels;
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    if (calls.depth[row] != depth) continue;
    const double begin = static_cast<double>(calls.begin[row] - picture.origin);
    const double end = static_cast<double>(calls.end(row) - picture.origin);
    const double pixel = (picture.end - picture.begin) / picture.width;
    if (end - begin >= pixel) {
      const bool inside = begin >= picture.begin && begin < picture.end;
      if (inside || (begin < picture.begin && end > picture.begin)) slices.push_back({row, 1, calls.duration[row]});
    } else if (begin >= picture.begin && begin < picture.end) {
      const auto at =
          static_cast<std::uint32_t>((begin - picture.begin) / (picture.end - picture.begin) * picture.width);
      const auto [found, fresh] = pixels.try_emplace(at, Slice{row, 1, calls.duration[row]});
      if (fresh) continue;
      if (calls.duration[row] > calls.duration[found->second.row]) found->second.row = row;
      ++found->second.count;
      found->second.sum += calls.duration[row];
    }
  }
  for (const auto& [at, slice] : pixels) slices.push_back(slice);
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.row < b.row; });
  return slices;
}

void expect_equal(const std::vector<Slice>& got, const std::vector<Slice>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(std::tie(got[i].row, got[i].count, got[i].sum), std::tie(want[i].row, want[i].count, want[i].sum)) << i;
  }
}

TEST(Lanes, EveryPixelIsWhatANaiveCountSays) {
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    const auto made =
        test::random_index({.seed = seed, .threads = 2, .calls = 6000, .most_depth = seed == 3 ? 2U : 6U});
    std::mt19937 random(seed);
    for (const engine::ThreadIndex& thread : made.index->threads()) {
      const double span = static_cast<double>(thread.last_ticks - made.index->origin());
      for (int i = 0; i < 60; ++i) {
        Picture picture;
        picture.origin = made.index->origin();
        // Powers of two divide without rounding, so that both sides agree on which pixel a border is in.
        picture.width = 1U << random() % 12;
        const double pixel = static_cast<double>(1U << random() % 14) / 4;
        picture.begin = i == 0 ? 0 : static_cast<double>(random() % static_cast<std::uint32_t>(span));
        picture.end = picture.begin + pixel * picture.width;
        for (std::uint32_t depth = 0; depth < thread.lanes.depths(); ++depth) {
          std::vector<Slice> got;
          thread.lanes.draw(thread.calls, depth, picture, got);
          EXPECT_LE(got.size(), 2 * picture.width + 2);
          expect_equal(got, naive_slices(thread.calls, depth, picture));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Lanes, TilesSideBySideShareNoShortCall) {
  const auto made = test::random_index({.seed = 9, .threads = 1, .calls = 5000});
  const engine::ThreadIndex& thread = made.index->threads()[0];
  const auto draw = [&](double begin, double end, std::uint32_t width) {
    std::vector<Slice> slices;
    thread.lanes.draw(thread.calls, 1, {begin, end, made.index->origin(), width}, slices);
    return slices;
  };
  const auto both = draw(0, 4096 * 64, 1024);
  auto joined = draw(0, 2048 * 64, 512);
  for (const Slice& slice : draw(2048 * 64, 4096 * 64, 512)) {
    if (joined.empty() || joined.back().row != slice.row) joined.push_back(slice);  // a long one over the border
  }
  expect_equal(joined, both);
}

TEST(Lanes, CoveredTime) {
  const auto made = test::random_index({.seed = 5, .threads = 1, .calls = 4000});
  const engine::ThreadIndex& thread = made.index->threads()[0];
  std::mt19937_64 random(5);
  const std::uint64_t span = thread.last_ticks - made.index->origin();
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t begin = made.index->origin() + random() % span;
    const std::uint64_t end = begin + random() % span;
    std::uint64_t want = 0;
    for (std::size_t row = 0; row < thread.calls.size(); ++row) {
      if (thread.calls.depth[row] != 0) continue;
      const std::uint64_t from = std::max(begin, thread.calls.begin[row]);
      const std::uint64_t to = std::min(end, thread.calls.end(row));
      if (to > from) want += to - from;
    }
    EXPECT_EQ(thread.lanes.covered(thread.calls, begin, end), want);
  }
}

TEST(Lanes, AnEmptyThreadHasNoDepth) {
  engine::Lanes lanes;
  lanes.build(engine::CallColumns());
  EXPECT_EQ(lanes.depths(), 0U);
  EXPECT_EQ(lanes.covered(engine::CallColumns(), 0, 100), 0U);
}

TEST(Lanes, CallsDeeperThanTheColumnTellsAreCounted) {
  reader::Calls calls;
  for (std::uint32_t i = 0; i < 70'000; ++i) {
    calls.function.push_back(1);
    calls.begin.push_back(i);
    calls.duration.push_back(200'000 - 2 * i);
    calls.parent.push_back(i == 0 ? reader::kNoParent : i - 1);
    calls.depth.push_back(static_cast<std::uint16_t>(std::min(i, 65535U)));
    calls.marks.push_back(0);
  }
  engine::Lanes lanes;
  lanes.build(engine::CallColumns(calls));
  EXPECT_EQ(lanes.depths(), 65536U);
  EXPECT_EQ(lanes.beyond_depth(), 70'000U - 65536U);
  EXPECT_EQ(lanes.rows(65535).size(), 1U);
}

TEST(Lanes, FilteredLanesHoldOneFunctionsCalls) {
  const auto made = test::random_index({.seed = 4, .threads = 2, .calls = 3000});
  const std::uint32_t function = 3;
  const auto filtered = engine::filter_lanes(*made.index, {function});
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < made.index->threads().size(); ++i) {
    const engine::ThreadIndex& thread = made.index->threads()[i];
    for (std::uint32_t depth = 0; depth < filtered.threads[i].depths(); ++depth) {
      for (const std::uint32_t row : filtered.threads[i].rows(depth)) {
        EXPECT_EQ(made.index->function_of(thread, row), function);
        EXPECT_EQ(thread.calls.depth[row], depth);
        ++calls;
      }
    }
  }
  EXPECT_EQ(calls, made.index->functions().functions()[function].calls);
}

TEST(Index, HoldsTimesThatRunBackwards) {
  test::SampleTrace sample;
  sample.process(1, "app", {"f", "g"}).thread(1, "t");
  sample.enter(1, 1000).enter(2, 1500).exit(2, 1400).enter(2, 1300).exit(2, 1600).exit(1, 1550).call(2, 1500, 1700);
  const auto index = test::index_of(sample);
  const engine::CallColumns& calls = index->threads()[0].calls;
  EXPECT_GT(index->threads()[0].out_of_order, 0U);
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_TRUE(reader::times_in_order(calls.begin, calls.duration, calls.parent));
  EXPECT_EQ(calls.begin[1], 1500U);
  EXPECT_EQ(calls.duration[1], 0U);
  EXPECT_EQ(calls.begin[2], 1500U);
  EXPECT_EQ(calls.end(2), 1600U);
  EXPECT_EQ(calls.end(0), 1600U);
  EXPECT_EQ(calls.begin[3], 1600U);
}

TEST(Index, SaysWhereHistoryIsMissing) {
  test::SampleTrace sample;
  sample.process(1, "app", {"f"}).thread(1, "t", 5).call(1, 2000, 3000);
  const auto index = test::index_of(sample);
  ASSERT_EQ(index->threads()[0].gaps.size(), 1U);
  const engine::Gap& gap = index->threads()[0].gaps[0];
  EXPECT_TRUE(gap.overwritten);
  EXPECT_EQ(gap.begin, 1000U);
  EXPECT_EQ(gap.end, 2000U);
  EXPECT_EQ(gap.blocks, 5U);
}

TEST(Index, FunctionsOfSeveralProcessesAreOne) {
  const auto made = test::random_index({.seed = 2, .threads = 1, .calls = 500, .processes = 3});
  EXPECT_EQ(made.index->functions().functions().size(), 7U);
  EXPECT_EQ(made.index->threads().size(), 3U);
  std::uint64_t calls = 0;
  for (const auto& function : made.index->functions().functions()) calls += function.calls;
  EXPECT_EQ(calls, 1500U);
  EXPECT_EQ(made.index->calls(), 1500U);
}

TEST(Index, CanBeStopped) {
  test::SampleTrace sample;
  test::fill_random(sample, {});
  engine::IndexProgress progress;
  progress.stop = true;
  EXPECT_FALSE(engine::TraceIndex::build(sample.open(), progress).ok());
}

}  // namespace
}  // namespace karst
