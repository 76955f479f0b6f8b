// Whom ftrace is told of when it joins a program that runs (kernel/late_ftrace.h).
#include "kernel/late_ftrace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace karst::test {
namespace {

using kernel::Followed;
using testing::ElementsAre;
using testing::IsEmpty;

format::StateRecord made(std::uint64_t ticks, pid_t maker, pid_t tid) {
  return {ticks, static_cast<std::uint32_t>(tid), static_cast<std::uint32_t>(maker), 1, 0, format::kStateNewThread, 0};
}

// Threads are looked up, so these are processes that are there for sure, or for sure not.
constexpr pid_t kGone = 0x3fffffff;
constexpr pid_t kProgram = 0x3ffffff0;

TEST(Followed, TheProgramAndWhatItMadeAreNamedOnce) {
  Followed followed(kProgram);
  EXPECT_THAT(followed.further(100, {made(20, kProgram, getppid()), made(10, kProgram, getpid())}),
              ElementsAre(kProgram, getpid(), getppid()));
  EXPECT_THAT(followed.further(200, {}), IsEmpty());
}

TEST(Followed, WhatIsGoneIsNotNamed) {
  Followed followed(kProgram);
  EXPECT_THAT(followed.further(100, {made(10, kProgram, kGone)}), ElementsAre(kProgram));
}

TEST(Followed, WhoIsMadeByOneThatIsFollowedNeedsNoName) {
  Followed followed(kProgram);
  followed.further(100, {});
  EXPECT_THAT(followed.further(200, {made(200, kProgram, getpid()), made(201, getpid(), getppid())}), IsEmpty());
}

TEST(Followed, WhoIsMadeWhileTheMakerIsBeingNamedIsNamedNext) {
  Followed followed(kProgram);
  followed.further(100, {});
  EXPECT_THAT(followed.further(200, {made(199, kProgram, getpid())}), ElementsAre(getpid()));
  // By then it is followed itself.
  EXPECT_THAT(followed.further(300, {made(299, getpid(), getppid())}), ElementsAre(getppid()));
  EXPECT_THAT(followed.further(400, {made(300, getppid(), kProgram + 1)}), IsEmpty());
}

TEST(Followed, AProgramThatNeverStopsMakingThreadsComesToAnEnd) {
  Followed followed(kProgram);
  int rounds = 0;
  while (rounds < 100 && !followed.further(0, {made(0, kGone, getpid())}).empty()) ++rounds;
  EXPECT_LT(rounds, 100);
}

}  // namespace
}  // namespace karst::test
