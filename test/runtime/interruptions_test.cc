#include "runtime/recording/interruptions.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/rseq.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace karst::runtime {
namespace {

volatile sig_atomic_t g_handled;
void handle(int) { g_handled = g_handled + 1; }

void spin(int times) {
  for (int i = 0; i < times; ++i) asm volatile("");
}

bool is_registered() {
  const auto* own =
      reinterpret_cast<const struct rseq*>(static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset);
  return __rseq_size != 0 && static_cast<std::int32_t>(own->cpu_id) >= 0;
}

/// Signals come while the thread runs, each at another instruction.
TEST(Interruptions, EveryHandlerIsNoticed) {
  struct sigaction before {};
  struct sigaction action {};
  action.sa_handler = handle;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  g_handled = 0;
  std::atomic<bool> done{false};
  std::thread shooter([&done, target = pthread_self()] {
    while (!done) {
      const int handled = g_handled;
      pthread_kill(target, SIGUSR1);
      while (g_handled == handled && !done) continue;
    }
  });
  int missed = 0;
  while (g_handled < 5000) {
    notice_interruptions();
    const int handled = g_handled;
    spin(handled % 100);
    if (g_handled != handled && !may_have_been_interrupted()) ++missed;
  }
  done = true;
  shooter.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(missed, 0);
}

TEST(Interruptions, ThereAreNoneWithoutAHandler) {
  int quiet = 0;
  for (int i = 0; i < 1000; ++i) {
    notice_interruptions();
    if (!may_have_been_interrupted()) ++quiet;
  }
  if (is_registered())
    EXPECT_GT(quiet, 500) << "preemption is rare in so short a time";
  else
    EXPECT_EQ(quiet, 0) << "nobody tells";
}

TEST(Interruptions, TheAnswerIsYesWhereNobodyHasAsked) {
  notice_none();
  EXPECT_TRUE(may_have_been_interrupted());
  std::thread([] { EXPECT_TRUE(may_have_been_interrupted()); }).join();
}

/// The kernel reads what was named whenever it preempts the thread, and kills it if that is not in order.
TEST(Interruptions, ThreadsThatArePreemptedLive) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  std::vector<std::thread> threads;
  std::atomic<int> preempted{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([end, &preempted] {
      while (std::chrono::steady_clock::now() < end) {
        notice_interruptions();
        spin(10000);
        if (may_have_been_interrupted()) ++preempted;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_GT(preempted, 0);
}

}  // namespace
}  // namespace karst::runtime
