#include "analysis/tree.h"

#include <gtest/gtest.h>

#include <string>

#include "test/analysis/sample_trace.h"

namespace karst::analysis {
namespace {

using test::SampleTrace;

// "a0 b1 /b1 /a0": what was entered and left, with levels.
std::string walked(const reader::Trace& trace, const TreeOptions& options,
                   std::uint32_t only_root = reader::kNoParent) {
  const reader::Process& process = trace.processes().at(0);
  const reader::Calls calls = reader::rebuild_calls(trace, process.threads.at(0));
  std::string text;
  auto name = [&](std::uint32_t row, std::uint32_t level) {
    return trace.function(process, calls.function[row]).name + std::to_string(level) + " ";
  };
  walk(
      calls, 0, options,
      [&](std::uint32_t row, std::uint32_t level) {
        text += name(row, level);
        return true;
      },
      [&](std::uint32_t row, std::uint32_t level) { text += "/" + name(row, level); }, only_root);
  return text;
}

TEST(Tree, WalksInOrderOfTimeAndNests) {
  SampleTrace sample;
  const reader::Trace trace = sample.nested_calls();
  EXPECT_EQ(walked(trace, {}), "a0 b1 c2 /c2 b2 /b2 /b1 c1 /c1 /a0 b0 /b0 ");
}

TEST(Tree, RootsAreTheOutermostMatches) {
  SampleTrace sample;
  const reader::Trace trace = sample.nested_calls();
  const FunctionSet only_b(trace, [](std::string_view name) { return name == "b"; });
  TreeOptions options;
  options.roots = &only_b;
  EXPECT_EQ(walked(trace, options), "b0 c1 /c1 b1 /b1 /b0 b0 /b0 ");
}

TEST(Tree, DepthCutsLevels) {
  SampleTrace sample;
  const reader::Trace trace = sample.nested_calls();
  TreeOptions options;
  options.max_levels = 2;
  EXPECT_EQ(walked(trace, options), "a0 b1 /b1 c1 /c1 /a0 b0 /b0 ");
}

TEST(Tree, OneSubtreeAlone) {
  SampleTrace sample;
  const reader::Trace trace = sample.nested_calls();
  EXPECT_EQ(walked(trace, {}, 1), "b0 c1 /c1 b1 /b1 /b0 ");
  EXPECT_EQ(walked(trace, {}, 5), "b0 /b0 ");
}

TEST(Tree, EnterCanEndTheWalk) {
  SampleTrace sample;
  const reader::Trace trace = sample.nested_calls();
  const reader::Calls calls = reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
  int entered = 0;
  walk(
      calls, 0, {}, [&](std::uint32_t, std::uint32_t) { return ++entered < 2; },
      [](std::uint32_t, std::uint32_t) { ADD_FAILURE() << "left a call after the end"; });
  EXPECT_EQ(entered, 2);
}

TEST(Tree, AMillionLevelsAreNoTrouble) {
  constexpr std::uint32_t kDeep = 1'000'000;
  SampleTrace sample;
  sample.process(1, "app", {"down"}).thread(1, "app");
  for (std::uint32_t i = 0; i < kDeep; ++i) sample.enter(1, 1000 + i);
  for (std::uint32_t i = 0; i < kDeep; ++i) sample.exit(1, 1000 + kDeep + i);
  const reader::Trace trace = sample.open();
  const reader::Calls calls = reader::rebuild_calls(trace, trace.processes()[0].threads[0]);
  std::uint32_t deepest = 0;
  std::uint32_t left = 0;
  walk(
      calls, 0, {},
      [&](std::uint32_t, std::uint32_t level) {
        deepest = std::max(deepest, level);
        return true;
      },
      [&](std::uint32_t, std::uint32_t) { ++left; });
  EXPECT_EQ(deepest, kDeep - 1);
  EXPECT_EQ(left, kDeep);
  EXPECT_EQ(path_to(calls, kDeep - 1).size(), kDeep - 1);
}

TEST(SlowestCalls, KeepsTheSlowestOutermostOfAllThreads) {
  SampleTrace sample;
  sample.process(1, "app", {"a", "b"});
  sample.thread(1, "one").enter(1, 1000).call(2, 1010, 1030).enter(2, 1040).call(2, 1041, 1099).exit(2, 1100);
  sample.exit(1, 1200);
  sample.thread(2, "two").call(2, 1000, 1040).call(2, 1050, 1055);
  const reader::Trace trace = sample.open();
  const FunctionSet only_b(trace, [](std::string_view name) { return name == "b"; });
  TreeOptions options;
  options.roots = &only_b;
  SlowestCalls slowest(2);
  for (const reader::Thread& thread : trace.processes()[0].threads) {
    slowest.add(thread, reader::rebuild_calls(trace, thread), options);
  }
  const std::vector<CallRef> found = slowest.take();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].duration, 60U);
  EXPECT_EQ(found[0].thread->tid, 1U);
  EXPECT_EQ(found[1].duration, 40U);
  EXPECT_EQ(found[1].thread->tid, 2U);
  const reader::Calls calls = reader::rebuild_calls(trace, *found[0].thread);
  EXPECT_EQ(path_to(calls, found[0].row), std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace karst::analysis
