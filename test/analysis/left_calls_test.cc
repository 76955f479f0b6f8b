// Calls that were left by a tail call, on traces written event by event.
#include "analysis/left_calls.h"

#include <gtest/gtest.h>

#include "test/analysis/sample_trace.h"

namespace karst {
namespace {

using analysis::LeftCallFinder;
using test::SampleTrace;

constexpr std::uint32_t kMain = 1, kServe = 2, kNext = 3, kServeLeft = 4;
constexpr std::uint64_t kPeriod = 10'000;

/// main() calls serve(), which is left 100 ns later, `times` times; one of these calls is `slow` ns from the next
/// event.
SampleTrace trace_of(int times, int at, std::uint64_t slow, std::uint64_t usual = 50) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "serve(int)", "next()", "serve(int)"});
  sample.function(kServeLeft).tail_exit = true;
  sample.function(kServeLeft).address = sample.function(kServe).address;
  sample.thread(10, "main").enter(kMain, 2'000);
  std::uint64_t now = 10'000;
  for (int i = 0; i < times; ++i) {
    const std::uint64_t behind = i == at ? slow : usual;
    sample.enter(kServe, now).exit(kServeLeft, now + 100).call(kNext, now + 100 + behind, now + 120 + behind);
    now += kPeriod + behind;
  }
  sample.exit(kMain, now);
  return sample;
}

std::vector<analysis::LeftFunction> left_in(const reader::Trace& trace, std::uint64_t least = 0,
                                            const analysis::FunctionSet* functions = nullptr) {
  LeftCallFinder finder(functions);
  for (const reader::Thread& thread : trace.processes()[0].threads) {
    const reader::Calls calls = rebuild_calls(trace, thread);
    finder.add(thread, columns::CallColumns(calls));
  }
  return finder.take(least, 3);
}

/// What is found of a trace that need not live longer.
std::vector<analysis::LeftFunction> left_of(SampleTrace sample, std::uint64_t least = 0) {
  return left_in(sample.open(), least);
}

TEST(LeftCalls, MayHaveLastedUntilTheThreadsNextEvent) {
  SampleTrace sample = trace_of(20, 7, 5'000'000);
  const reader::Trace trace = sample.open();
  const auto left = left_in(trace);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].calls, 20U);
  EXPECT_EQ(left[0].usual_behind, 50U);
  EXPECT_EQ(left[0].longest.function, kServe);
  EXPECT_EQ(left[0].longest.call.duration, 5'000'100U);
  EXPECT_EQ(left[0].longest.excess(), 4'999'950U);
  EXPECT_EQ(left[0].longest.call.end - left[0].longest.call.begin, 5'000'100U);
}

TEST(LeftCalls, AreToldWhereOneIsFarFromTheUsualAlone) {
  EXPECT_TRUE(left_of(trace_of(20, 7, 140)).empty());           // less than three times the usual
  EXPECT_TRUE(left_of(trace_of(20, 7, 5'000), 5'000).empty());  // less than what was asked for
  EXPECT_EQ(left_of(trace_of(20, 7, 5'000), 4'000).size(), 1U);
}

TEST(LeftCalls, OfFewNothingIsUsual) {
  const auto left = left_of(trace_of(9, -1, 0, 3'000));
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].usual_behind, 0U);
  EXPECT_EQ(left[0].longest.call.duration, 3'100U);
  EXPECT_TRUE(left_of(trace_of(9, -1, 0, 3'000), 3'001).empty());
}

TEST(LeftCalls, OfFunctionsThatWereNotAskedForAreNotTold) {
  SampleTrace sample = trace_of(20, 7, 5'000'000);
  const reader::Trace trace = sample.open();
  const analysis::FunctionSet others(trace, [](std::string_view name) { return name != "serve(int)"; });
  EXPECT_TRUE(left_in(trace, 0, &others).empty());
}

TEST(LeftCalls, TheLastOfItsCallerMayHaveLastedAsLongAsThat) {
  SampleTrace sample;
  sample.process(10, "app", {"main", "serve(int)", "next()", "serve(int)"});
  sample.function(kServeLeft).tail_exit = true;
  sample.function(kServeLeft).address = sample.function(kServe).address;
  sample.thread(10, "main").enter(kMain, 2'000).enter(kNext, 3'000).enter(kServe, 4'000);
  sample.call(kNext, 4'100, 4'200).exit(kServeLeft, 4'300).exit(kNext, 9'000).exit(kMain, 20'000);
  const reader::Trace trace = sample.open();
  const auto left = left_in(trace);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].longest.call.duration, 5'000U);
  EXPECT_EQ(left[0].longest.excess(), 4'700U);
}

}  // namespace
}  // namespace karst
