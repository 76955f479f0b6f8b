// The one reader of /proc/PID/status, against the kernel and against lines that it never writes.
#include "base/process_status.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace karst {
namespace {

TEST(ProcessStatus, OfThisProcessIsWhatTheSystemSays) {
  const auto status = ProcessStatus::read("/proc/self/status");
  EXPECT_FALSE(status.empty());
  EXPECT_EQ(status.number("Tgid"), static_cast<std::uint64_t>(getpid()));
  EXPECT_EQ(status.number("PPid"), static_cast<std::uint64_t>(getppid()));
  EXPECT_EQ(status.number("TracerPid"), 0U);
  EXPECT_EQ(status.numbers("Uid").size(), 4U);
  EXPECT_EQ(status.number("Uid"), getuid());
  EXPECT_EQ(status.field("State").substr(0, 1), "R");
  EXPECT_GT(status.number("VmRSS").value_or(0), 100U) << "kB";
}

// A process chooses its name, and nothing else of the file.
TEST(ProcessStatus, ANameMakesNoLine) {
  char before[16] = {};
  prctl(PR_GET_NAME, before);
  prctl(PR_SET_NAME, "\nUid:\t77 7\n");
  const auto status = ProcessStatus::read("/proc/thread-self/status");
  prctl(PR_SET_NAME, before);
  EXPECT_EQ(status.number("Uid"), getuid());
  EXPECT_EQ(status.field("Name"), "\\nUid:\t77 7\\n");
}

TEST(ProcessStatus, FieldsAreWholeNames) {
  const ProcessStatus status(
      "Name:\tUid\nTgidx:\t1\nxTgid:\t2\nNo\nTgid:\t3\nTgid:\t4\nSeccomp:\t\nSeccomp_filters:\t5");
  EXPECT_EQ(status.number("Tgid"), 3U);
  EXPECT_EQ(status.field("Name"), "Uid");
  EXPECT_EQ(status.field("Seccomp"), "");
  EXPECT_FALSE(status.number("Seccomp"));
  EXPECT_EQ(status.number("Seccomp_filters"), 5U) << "the last line has no newline";
  EXPECT_EQ(status.field("No"), "");
  EXPECT_EQ(status.field(""), "");
}

TEST(ProcessStatus, NumbersEndAtWhatIsNone) {
  const ProcessStatus status(
      "Groups:\t1 20  300 \nVmRSS:\t  1204 kB\nSigCgt:\t8000000000000401\nHuge:\t99999999999999999999\n"
      "Mixed:\t1 2x 3\nMinus:\t-1\nEmpty:\n");
  EXPECT_EQ(status.numbers("Groups"), (std::vector<std::uint64_t>{1, 20, 300}));
  EXPECT_EQ(status.numbers("VmRSS"), (std::vector<std::uint64_t>{1204}));
  EXPECT_EQ(status.number("SigCgt", 16), 0x8000000000000401U);
  EXPECT_FALSE(status.number("Huge"));
  EXPECT_EQ(status.numbers("Mixed"), (std::vector<std::uint64_t>{1}));
  EXPECT_FALSE(status.number("Minus"));
  EXPECT_TRUE(status.numbers("Empty").empty());
  EXPECT_TRUE(status.numbers("None").empty());
}

TEST(ProcessStatus, OfNoProcessIsEmpty) {
  EXPECT_TRUE(ProcessStatus::read("/proc/0/status").empty());
  EXPECT_EQ(ProcessStatus("").field("Name"), "");
  EXPECT_EQ(ProcessStatus("\n\n:\n").field("Name"), "");
}

}  // namespace
}  // namespace karst
