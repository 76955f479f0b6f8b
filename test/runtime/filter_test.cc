// Filters of system calls: which numbers a filter may punish, whatever the arguments are.
#include "runtime/system/filter.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include <vector>

#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

constexpr auto kNumber = static_cast<unsigned>(offsetof(seccomp_data, nr));
constexpr auto kArchitecture = static_cast<unsigned>(offsetof(seccomp_data, arch));
constexpr auto kArgument = static_cast<unsigned>(offsetof(seccomp_data, args));

constexpr sock_filter load(unsigned at) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at); }
constexpr sock_filter jump(unsigned short how, unsigned value, unsigned char yes, unsigned char no) {
  return BPF_JUMP(static_cast<unsigned short>(BPF_JMP | how | BPF_K), value, yes, no);
}
constexpr sock_filter answer(unsigned what) { return BPF_STMT(BPF_RET | BPF_K, what); }

bool deadly(const std::vector<sock_filter>& filter, std::uint32_t number) {
  return is_deadly(filter.data(), static_cast<std::uint32_t>(filter.size()), number);
}

TEST(Filter, ListOfWhatIsAllowed) {
  const std::vector<sock_filter> filter{load(kArchitecture),
                                        jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
                                        answer(SECCOMP_RET_KILL_PROCESS),
                                        load(kNumber),
                                        jump(BPF_JEQ, SYS_write, 1, 0),
                                        jump(BPF_JEQ, SYS_madvise, 0, 1),
                                        answer(SECCOMP_RET_ALLOW),
                                        answer(SECCOMP_RET_KILL_PROCESS)};
  EXPECT_FALSE(deadly(filter, SYS_write));
  EXPECT_FALSE(deadly(filter, SYS_madvise));
  EXPECT_TRUE(deadly(filter, SYS_gettid));
}

TEST(Filter, ErrorsAndLogsAreNotDeadlyAndTrapsAre) {
  for (const unsigned harmless : {SECCOMP_RET_ALLOW, SECCOMP_RET_LOG, SECCOMP_RET_ERRNO | 1U})
    EXPECT_FALSE(deadly({answer(harmless)}, SYS_read)) << harmless;
  for (const unsigned harmful :
       {SECCOMP_RET_TRAP, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_USER_NOTIF, SECCOMP_RET_TRACE})
    EXPECT_TRUE(deadly({answer(harmful)}, SYS_read)) << harmful;
  EXPECT_TRUE(deadly({BPF_STMT(BPF_RET | BPF_A, 0)}, SYS_read));
}

TEST(Filter, WhatDependsOnAnArgumentMayBeDeadly) {
  const std::vector<sock_filter> filter{
      load(kNumber),           jump(BPF_JEQ, SYS_prctl, 0, 3), load(kArgument),
      jump(BPF_JEQ, 15, 1, 0), answer(SECCOMP_RET_TRAP),       answer(SECCOMP_RET_ALLOW)};
  EXPECT_TRUE(deadly(filter, SYS_prctl));
  EXPECT_FALSE(deadly(filter, SYS_read));
}

// A tree of ranges, as libseccomp makes it; two ways meet before the answer.
TEST(Filter, RangesAndWaysThatMeet) {
  const std::vector<sock_filter> filter{load(kNumber),
                                        jump(BPF_JGE, 100, 0, 2),
                                        jump(BPF_JGT, 200, 0, 2),
                                        BPF_STMT(BPF_JMP | BPF_JA, 2),
                                        BPF_STMT(BPF_JMP | BPF_JA, 1),
                                        jump(BPF_JSET, 1, 1, 0),
                                        answer(SECCOMP_RET_ALLOW),
                                        answer(SECCOMP_RET_KILL_THREAD)};
  EXPECT_FALSE(deadly(filter, 50));
  EXPECT_FALSE(deadly(filter, 250));
  EXPECT_FALSE(deadly(filter, 102));
  EXPECT_TRUE(deadly(filter, 103));
}

TEST(Filter, CallsThatWouldBePunishedFailByThemselves) {
  EXPECT_GT(sys::getpid(), 0);
  const std::vector<sock_filter> filter{load(kNumber), jump(BPF_JEQ, SYS_getpid, 0, 1), answer(SECCOMP_RET_TRAP),
                                        answer(SECCOMP_RET_ALLOW)};
  heed_filter({static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())});
  EXPECT_EQ(sys::getpid(), -1);
  EXPECT_GT(sys::getppid(), 0);
  sys::g_deadly[SYS_getpid / 64] = 0;
}

}  // namespace
}  // namespace karst::runtime
