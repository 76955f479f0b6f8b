// Samples among calls against a naive search of all calls, and as slices of the page against the samples themselves.
#include "analysis/samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "columns/columns.h"
#include "engine/tiles/tracks.h"
#include "test/analysis/sample_states.h"
#include "test/engine/random_trace.h"

namespace karst {
namespace {

using analysis::SamplePlace;
using analysis::SamplePlaces;

constexpr std::uint32_t kTraced = 7;  // f1 to f7 are the first sampled functions
constexpr std::uint64_t kPeriod = 100;

// Of random threads random samples, whose stacks have frames of traced functions and of others.
struct Sampled {
  test::SampleTrace sample;
  std::unique_ptr<engine::TraceIndex> index;

  explicit Sampled(std::uint32_t seed) {
    test::fill_random(sample, {.seed = seed, .threads = 3, .calls = 600});
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    reader::SampleLog log;
    log.source.period_ns = kPeriod;
    for (std::uint32_t i = 1; i <= kTraced; ++i)
      log.functions.push_back({"/bin/sample", "", 0x1000 + i * 16, 16, 0, "f" + std::to_string(i), ""});
    for (std::uint32_t i = 0; i < 5; ++i)
      log.functions.push_back({"/lib/other", "", i * 16, 16, 0, "other" + std::to_string(i), ""});
    for (std::uint32_t i = 0; i < 200; ++i)
      log.stacks.push_back({below(i + 1), below(static_cast<std::uint32_t>(log.functions.size()))});
    for (std::uint32_t i = 0; i < 3000; ++i)
      log.samples.push_back({1000 + below(400'000), 100 + below(4), 100, below(201), 0, 0});
    std::sort(log.samples.begin(), log.samples.end(), [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
    sample.samples(std::move(log));
    index = test::index_of(sample);
  }
};

// The innermost call at a time, of all.
std::uint32_t naive_row(const reader::Calls& calls, std::uint64_t ticks) {
  std::uint32_t found = reader::kNoParent;
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    if (calls.begin[row] > ticks) continue;
    const bool open = calls.begin[row] + calls.duration[row] >= ticks;
    // A call that ended as the next one beside it began has made room for that.
    if (open && (found == reader::kNoParent || calls.depth[row] >= calls.depth[found])) found = row;
    if (calls.parent[row] != reader::kNoParent && found == row &&
        calls.begin[calls.parent[row]] + calls.duration[calls.parent[row]] < ticks)
      found = calls.parent[row];
  }
  return found;
}

std::vector<std::uint32_t> frames_of(const reader::SampleLog& log, std::uint32_t stack) {
  std::vector<std::uint32_t> frames;
  for (; stack != 0; stack = log.stacks[stack - 1].caller) frames.push_back(log.stacks[stack - 1].function);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

TEST(ViewSamples, AreBelowTheInnermostCallOfTheirThread) {
  std::size_t seen = 0, below = 0, unplaced = 0;
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    const Sampled made(seed);
    const reader::Trace& trace = made.index->trace();
    SamplePlaces places(trace, analysis::SamplesOf::kCpu);
    for (const reader::Thread& thread : trace.processes()[0].threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      places.each(thread, columns::CallColumns(calls), calls.first_ticks, [&](const SamplePlace& place) {
        ++seen;
        ASSERT_EQ(place.sample->tid, thread.tid);
        const std::uint32_t row = naive_row(calls, place.sample->ticks);
        ASSERT_EQ(place.row, row);
        const std::vector<std::uint32_t> frames = frames_of(trace.samples(), place.sample->stack);
        EXPECT_TRUE(std::equal(frames.begin(), frames.end(), place.stack.begin(), place.stack.end()));
        std::vector<std::uint32_t> expected = frames;
        if (row != reader::kNoParent) {
          // What is behind the last frame of the call's function.
          const auto last = std::find(frames.rbegin(), frames.rend(), calls.function[row] - 1);
          EXPECT_EQ(place.is_placed, last != frames.rend());
          expected.assign(last == frames.rend() ? frames.end() : last.base(), frames.end());
          unplaced += place.is_placed ? 0 : 1;
        }
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), place.below.begin(), place.below.end()));
        below += place.below.size();
      });
    }
    EXPECT_GT(places.of_others(), 0U) << "one thread of the samples is not in the trace";
  }
  EXPECT_GT(seen, 10'000U);
  EXPECT_GT(below, 1000U);
  EXPECT_GT(unplaced, 1000U);
}

TEST(ViewSamples, AreInSlicesOfTheirFrames) {
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    const Sampled made(seed);
    const engine::TraceIndex& index = *made.index;
    SamplePlaces places(index.trace(), analysis::SamplesOf::kCpu);
    for (const engine::ThreadIndex& thread : index.threads()) {
      ASSERT_NE(thread.of_samples, nullptr);
      const engine::Strip& strip = *thread.of_samples;
      std::map<std::uint32_t, std::uint64_t> counted, expected;
      std::map<std::uint16_t, std::uint64_t> end;  // by level
      for (std::size_t row = 0; row < strip.calls.size(); ++row) {
        counted[strip.calls.function[row]] += strip.source[row];
        EXPECT_GE(strip.calls.begin[row], end[strip.calls.depth[row]]) << "slices of a level overlap";
        end[strip.calls.depth[row]] = strip.calls.end(row);
        EXPECT_TRUE(row == 0 || strip.calls.begin[row - 1] <= strip.calls.begin[row]);
        EXPECT_LT(strip.calls.depth[row], thread.levels());
      }
      places.each(*thread.thread, thread.calls, thread.first_ticks, [&](const SamplePlace& place) {
        if (!place.has_calls) return;
        const std::uint32_t level = place.row == reader::kNoParent ? 0 : thread.calls.depth[place.row] + 1U;
        for (std::size_t i = 0; i < place.below.size(); ++i) {
          ++expected[place.below[i]];
          bool found = false;
          for (std::size_t row = 0; row < strip.calls.size() && !found; ++row)
            found = strip.calls.depth[row] == level + i && strip.calls.function[row] == place.below[i] &&
                    strip.calls.begin[row] <= place.sample->ticks && strip.calls.end(row) >= place.sample->ticks;
          EXPECT_TRUE(found);
        }
      });
      EXPECT_EQ(counted, expected) << "each sample counts once in each of its frames";
    }
  }
}

TEST(ViewSamples, WaitsAreSlicesThatEndAsTheyDo) {
  std::size_t waits = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    test::SampleTrace sample;
    test::fill_random(sample, {.seed = seed, .threads = 3, .calls = 600});
    const reader::StateLog log = test::random_states(seed, 100, {100, 101, 102}, 1000, 400'000, 500);
    sample.states(log);
    reader::SampleLog sampled;
    sampled.source.period_ns = kPeriod;
    sampled.functions = {{"/lib/other", "", 0x10, 16, 0, "outer", ""}, {"/lib/other", "", 0x20, 16, 0, "inner", ""}};
    sampled.stacks = {{0, 0}, {1, 1}};
    for (const format::StateRecord& record : log.records)
      if (record.kind == format::kStateLeaveCpu && record.tid >= 100)
        sampled.waits.push_back({record.ticks, record.tid, 100, 2, 0, 0});
    for (std::uint64_t ticks = 1000; ticks < 400'000; ticks += kPeriod)
      sampled.samples.push_back({ticks, 100 + static_cast<std::uint32_t>(ticks / kPeriod % 3), 100, 2, 0, 0});
    sample.samples(std::move(sampled));
    const auto index = test::index_of(sample);
    SamplePlaces places(index->trace(), analysis::SamplesOf::kWaits);
    for (const engine::ThreadIndex& thread : index->threads()) {
      const engine::Strip& strip = *thread.of_samples;
      places.each(*thread.thread, thread.calls, thread.first_ticks, [&](const SamplePlace& place) {
        // Of states that follow each other, and of which the second began as the first ended, one is drawn.
        if (!place.has_calls || place.below.empty() || place.blocked.begin + 1 >= place.blocked.end) return;
        ++waits;
        bool found = false;
        for (std::size_t row = 0; row < strip.calls.size() && !found; ++row)
          found = strip.source[row] == 0 && strip.calls.function[row] == place.below[0] &&
                  strip.calls.begin[row] >= place.blocked.begin && strip.calls.end(row) == place.blocked.end;
        EXPECT_TRUE(found) << "seed " << seed << ", at " << place.blocked.begin;
      });
      for (std::size_t row = 0; row < strip.calls.size(); ++row) {
        if (strip.source[row] != 0) continue;
        const auto& states = *thread.states;
        EXPECT_EQ(states.state[states.at(strip.calls.end(row) - 1)], reader::ThreadState::kBlocked);
      }
    }
  }
  EXPECT_GT(waits, 500U);
}

TEST(ViewSamples, HaveATrackForEachThreadThatWasSampled) {
  const Sampled made(3);
  std::size_t tracks = 0;
  for (const engine::Track& track : engine::tracks_of(*made.index))
    if (track.kind->name() == "samples") {
      ++tracks;
      EXPECT_EQ(track.facts.lanes, made.index->threads()[track.facts.owner].of_samples->lanes.depths());
    }
  EXPECT_EQ(tracks, made.index->threads().size());
  const test::Indexed without = test::random_index({});
  for (const engine::Track& track : engine::tracks_of(*without.index)) EXPECT_NE(track.kind->name(), "samples");
}

}  // namespace
}  // namespace karst
