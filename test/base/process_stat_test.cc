// The one reader of /proc/PID/stat, against the kernel, children that end, and names that look like fields.
#include "base/process_stat.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace karst {
namespace {

TEST(ProcessStat, OfThisProcessIsWhatTheSystemSays) {
  const auto stat = ProcessStat::of(getpid());
  EXPECT_FALSE(stat.empty());
  EXPECT_EQ(stat.state(), 'R');
  EXPECT_FALSE(stat.is_gone());
  EXPECT_GT(stat.number(ProcessStat::kStartTicks).value_or(0), 0U);
  tms used{};
  times(&used);
  EXPECT_LE(stat.number(ProcessStat::kUserTicks), static_cast<std::uint64_t>(used.tms_utime) + 1);
  EXPECT_EQ(stat.number(ProcessStat::kExitStatus), 0U);
}

TEST(ProcessStat, OfOneThatHasEndedTheStatusIsThere) {
  const pid_t child = fork();
  if (child == 0) _exit(7);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto dead = ProcessStat::of(child);
  EXPECT_EQ(dead.state(), 'Z');
  EXPECT_TRUE(dead.is_gone());
  const auto status = dead.number(ProcessStat::kExitStatus);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(status, 7U << 8);
  EXPECT_TRUE(ProcessStat::of(child).empty());
  EXPECT_TRUE(ProcessStat::of(child).is_gone());
  EXPECT_EQ(ProcessStat::of(child).state(), '?');
}

// A process chooses its name, and nothing else of the file.
TEST(ProcessStat, ANameMakesNoField) {
  char before[16] = {};
  prctl(PR_GET_NAME, before);
  prctl(PR_SET_NAME, ") Z 1 2 3 ) (");
  const auto stat = ProcessStat::read("/proc/thread-self/stat");
  prctl(PR_SET_NAME, before);
  EXPECT_EQ(stat.state(), 'R');
  EXPECT_EQ(stat.number(ProcessStat::kStartTicks),
            ProcessStat::read("/proc/thread-self/stat").number(ProcessStat::kStartTicks));
}

TEST(ProcessStat, WhatIsCutShortHasNoFields) {
  EXPECT_TRUE(ProcessStat("").empty());
  EXPECT_TRUE(ProcessStat("12 (name").empty());
  EXPECT_TRUE(ProcessStat("12 (name)").empty());
  EXPECT_EQ(ProcessStat("12 (name) S 1 2").number(ProcessStat::kStartTicks), std::nullopt);
  EXPECT_EQ(ProcessStat("12 (name) S 1 2 3 4 5 6 7 8 9 10 x").number(ProcessStat::kUserTicks), std::nullopt);
  EXPECT_EQ(ProcessStat("12 (name) S 1 2 3 4 5 6 7 8 9 10 11").number(ProcessStat::kUserTicks), 11U);
}

}  // namespace
}  // namespace karst
