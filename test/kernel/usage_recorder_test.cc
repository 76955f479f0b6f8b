// What is read of a process against what the process and its parent are told by the kernel in another way: getrusage.
#include "kernel/usage_recorder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace karst::test {
namespace {

using format::UsageKind;
using format::UsageOf;
using reader::UsageLog;
using reader::UsageSeries;

const UsageSeries* find(const UsageLog& log, UsageKind kind, UsageOf of) {
  const auto at = std::find_if(log.series.begin(), log.series.end(),
                               [&](const UsageSeries& series) { return series.kind == kind && series.of == of; });
  return at == log.series.end() ? nullptr : &*at;
}

std::int64_t grown(const UsageSeries& series) { return series.points.back().value - series.points.front().value; }

constexpr std::size_t kBytes = std::size_t{48} << 20;

/// Waits for its go, burns CPU time, fills memory, reads as many bytes, and waits again.
[[noreturn]] void work(int go, int done) {
  char word = 0;
  if (read(go, &word, 1) != 1) _exit(1);
  constexpr std::uint64_t kBurnNs = 300'000'000;
  while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < kBurnNs) {
  }
  auto memory = std::make_unique<char[]>(kBytes);
  std::memset(memory.get(), 1, kBytes);
  const int zeros = open("/dev/zero", O_RDONLY);
  for (std::size_t at = 0; at < kBytes; at += 1 << 20)
    if (read(zeros, memory.get() + at, 1 << 20) != 1 << 20) _exit(1);
  if (write(done, &word, 1) != 1 || read(go, &word, 1) != 1) _exit(1);
  _exit(memory[5] == 0 ? 0 : 1);
}

class Child {
 public:
  Child() {
    if (pipe(go_) != 0 || pipe(done_) != 0) std::abort();
    pid = fork();
    if (pid == 0) work(go_[0], done_[1]);
  }
  void go() const { ASSERT_EQ(write(go_[1], "", 1), 1); }
  void wait_until_done() const {
    char word = 0;
    ASSERT_EQ(read(done_[0], &word, 1), 1);
  }
  rusage end() const {
    rusage usage{};
    int status = 0;
    EXPECT_EQ(wait4(pid, &status, 0, &usage), pid);
    EXPECT_EQ(status, 0);
    return usage;
  }
  pid_t pid = 0;

 private:
  int go_[2]{};
  int done_[2]{};
};

TEST(UsageRecorder, SaysWhatGetrusageSays) {
  const Child child;
  kernel::UsageRecorder recorder;
  recorder.start(child.pid);
  usleep(30'000);
  child.go();
  child.wait_until_done();
  usleep(150'000);
  const UsageLog log = recorder.stop();
  child.go();
  const rusage usage = child.end();
  const auto ns = [](const timeval& time) { return time.tv_sec * 1'000'000'000 + time.tv_usec * 1000; };

  const UsageSeries* const cpu = find(log, UsageKind::kCpu, UsageOf::kProcess);
  ASSERT_NE(cpu, nullptr);
  // Its beginning and its end, where it lets go of its memory, are not in the readings.
  const auto used = static_cast<double>(ns(usage.ru_utime) + ns(usage.ru_stime));
  EXPECT_NEAR(static_cast<double>(grown(*cpu)), used, 15e6 + used / 10);
  const UsageSeries* const thread = find(log, UsageKind::kCpu, UsageOf::kThread);
  ASSERT_NE(thread, nullptr);
  EXPECT_NEAR(static_cast<double>(grown(*thread)), static_cast<double>(grown(*cpu)), 10e6);

  const UsageSeries* const memory = find(log, UsageKind::kMemory, UsageOf::kProcess);
  ASSERT_NE(memory, nullptr);
  std::int64_t most = 0;
  for (const auto& point : memory->points) most = std::max(most, point.value);
  EXPECT_GE(most - memory->points.front().value, static_cast<std::int64_t>(kBytes * 9 / 10));
  EXPECT_LE(most, usage.ru_maxrss * 1024 + (4 << 20));

  const UsageSeries* const faults = find(log, UsageKind::kFaults, UsageOf::kProcess);
  ASSERT_NE(faults, nullptr);
  EXPECT_LE(grown(*faults), usage.ru_minflt);
  EXPECT_GE(faults->points.back().value + 20, usage.ru_minflt);

  if (const UsageSeries* const bytes = find(log, UsageKind::kRead, UsageOf::kProcess); bytes != nullptr) {
    EXPECT_NEAR(static_cast<double>(grown(*bytes)), static_cast<double>(kBytes), 100);
  }
  const UsageSeries* const switches = find(log, UsageKind::kSwitches, UsageOf::kProcess);
  ASSERT_NE(switches, nullptr);
  // All that it had, those before the first reading too: on a busy machine these are many.
  const auto all = static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw);
  EXPECT_NEAR(static_cast<double>(switches->points.back().value), all, 40);
  for (const UsageSeries& series : log.series)
    for (std::size_t i = 1; i < series.points.size(); ++i)
      ASSERT_LE(series.points[i - 1].ticks, series.points[i].ticks);
}

TEST(UsageRecorder, OneThatEndedHasNoMemoryFromThereOn) {
  const Child child;
  kernel::UsageRecorder recorder;
  recorder.start(child.pid);
  child.go();
  child.wait_until_done();
  child.go();
  child.end();
  usleep(50'000);
  const UsageLog log = recorder.stop();
  for (const UsageKind kind : {UsageKind::kMemory, UsageKind::kThreads}) {
    const UsageSeries* const series = find(log, kind, UsageOf::kProcess);
    ASSERT_NE(series, nullptr);
    EXPECT_EQ(series->points.back().value, 0);
  }
}

TEST(UsageRecorder, ManyThreadsAreReadInTurns) {
  std::atomic<bool> ends = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 100; ++i)
    threads.emplace_back([&] {
      while (!ends) usleep(1000);
    });
  kernel::UsageRecorder recorder;
  recorder.start(*HeldProcess::open(getpid()));
  usleep(3'000'000);  // on a busy machine, too
  const UsageLog log = recorder.stop();
  ends = true;
  for (std::thread& thread : threads) thread.join();
  const auto of_threads = std::count_if(log.series.begin(), log.series.end(), [](const UsageSeries& series) {
    return series.of == UsageOf::kThread && series.kind == UsageKind::kSwitches;
  });
  EXPECT_GE(of_threads, 101);
  // The sum has no leap where a thread is read for the first time: they all were there before.
  const UsageSeries* const switches = find(log, UsageKind::kSwitches, UsageOf::kProcess);
  ASSERT_NE(switches, nullptr);
  EXPECT_LT(switches->points.front().value, 10'000);
}

TEST(UsageRecorder, WithoutAStartThereIsNothing) {
  kernel::UsageRecorder recorder;
  recorder.add(getpid());
  EXPECT_TRUE(recorder.stop().empty());
}

TEST(UsageRecorder, StaysWithinItsBudget) {
  kernel::UsageRecorder recorder;
  const std::uint64_t begin = clock_ns(CLOCK_MONOTONIC);
  recorder.start(*HeldProcess::open(getpid()));
  usleep(3'000'000);
  const UsageLog log = recorder.stop();
  const double share = static_cast<double>(recorder.cost_ns()) / static_cast<double>(clock_ns(CLOCK_MONOTONIC) - begin);
  // 2 ms are free, which are less than 0.1% of 3 s, what it takes to open files comes beside it, and the last readings
  // are not waited for. On a busy machine all of it takes twice as long: `script/bench --only usage` measures it.
  EXPECT_LT(share, 0.004);
  const UsageSeries* const cpu = find(log, UsageKind::kCpu, UsageOf::kProcess);
  ASSERT_NE(cpu, nullptr);
}

}  // namespace
}  // namespace karst::test
