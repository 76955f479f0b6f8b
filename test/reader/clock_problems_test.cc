// Readings of clocks that are not steady are told of; steady ones are not.
#include "reader/clock_problems.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace karst::test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kWall = 1'700'000'000 * kSecond;

/// After so many seconds, by a counter of 2 GHz.
ClockPair at(double seconds) {
  const auto ns = static_cast<std::uint64_t>(seconds * 1e9);
  return {1000 + 2 * ns, 5 * kSecond + ns, kWall + ns, 100};
}

std::string problems(std::vector<ClockPair> pairs) {
  std::string all;
  for (const std::string& text : reader::clock_problems({2 * kSecond, 0, std::move(pairs)})) all += text + "\n";
  return all;
}

TEST(ClockProblems, SteadyReadingsAreNoProblem) {
  EXPECT_EQ(problems({}), "");
  EXPECT_EQ(problems({at(0)}), "");
  EXPECT_EQ(problems({at(3600), at(0), at(0.001), at(0.001)}), "");
  ClockPair late = at(10);  // the thread lost its CPU between the two clocks
  late.ticks += 2 * 50'000'000;
  late.uncertainty_ns = 60'000'000;
  EXPECT_EQ(problems({at(0), late}), "");
  ClockPair without_wall = at(10);
  without_wall.realtime_ns = 0;
  EXPECT_EQ(problems({at(0), without_wall, at(20)}), "");
}

TEST(ClockProblems, ACounterThatGoesBackwards) {
  ClockPair moved = at(10);
  moved.ticks = 500;
  EXPECT_NE(problems({at(0), at(5), moved}).find("went backwards by 5000.000 ms"), std::string::npos);
}

TEST(ClockProblems, ARateThatChangesAndACounterThatJumps) {
  ClockPair faster = at(10);
  faster.ticks += 2 * 20'000'000;  // 20 ms in 10 s
  EXPECT_NE(problems({at(0), at(5), faster}).find("differ by 20.000 ms"), std::string::npos);
  ClockPair tolerable = at(10);
  tolerable.ticks += 2 * 900'000;
  EXPECT_EQ(problems({at(0), tolerable}), "");
  // Suspended for an hour, in which the counter went on and the kernel's clock did not.
  ClockPair slept = at(10);
  slept.ticks += 2 * 3600 * kSecond;
  slept.realtime_ns += 3600 * kSecond;
  const std::string said = problems({at(0), slept});
  EXPECT_NE(said.find("differ by 3600000.000 ms"), std::string::npos);
  EXPECT_NE(said.find("the wall clock moved by 3600000.000 ms"), std::string::npos);
}

TEST(ClockProblems, AMachineThatSleptWithItsCounter) {
  ClockPair slept = at(10);
  slept.realtime_ns += 60 * kSecond;
  EXPECT_EQ(problems({at(0), slept}),
            "the wall clock moved by 60000.000 ms against the trace's clock: the machine was suspended, or its clock "
            "was set\n");
}

TEST(ClockProblems, NumbersOfAnyKindAreOnlyNumbers) {
  const ClockPair end{~0ULL, ~0ULL, ~0ULL, ~0U};
  EXPECT_NO_THROW(problems({end, {}, end, at(1), {0, ~0ULL, 1, 0}}));
  EXPECT_NO_THROW(reader::clock_problems({1, 0, {at(0), end}}));
}

}  // namespace
}  // namespace karst::test
