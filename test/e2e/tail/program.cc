// Calls in several threads, begun by a line on standard input; counts them itself.
//   paced ROUNDS   three threads, a pause after each round, so that whoever looks keeps up
//   fast CALLS     one thread, as fast as it can
//   churn THREADS  threads that make the same few calls and end, one after the other
//   deep LEVELS    a recursion, one level each line of input
#include <karst/karst.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline))

std::atomic<long> g_leaves{0}, g_steps{0}, g_rounds{0}, g_thrown{0};

extern "C" {
NOINLINE void leaf(int i) {
  asm volatile("" ::"r"(i) : "memory");
  g_leaves.fetch_add(1, std::memory_order_relaxed);
}
NOINLINE void quick_leaf(int i) { asm volatile("" ::"r"(i) : "memory"); }
}

NOINLINE void throwing(int i) {
  g_thrown.fetch_add(1, std::memory_order_relaxed);
  if (i % 2 == 0) throw std::runtime_error("even");
}

NOINLINE int step(int i, const char* what) {
  g_steps.fetch_add(1, std::memory_order_relaxed);
  for (int n = 0; n < 3; ++n) leaf(n);
  if (what[0] == 's') karst_message("a step");
  return i + 1;
}

NOINLINE void round_of(int i) {
  g_rounds.fetch_add(1, std::memory_order_relaxed);
  karst_log_at(KARST_LOG_WARNING, "round %d of %s", i, "work");
  for (int n = 0; n < 4; ++n) step(n, "step");
  try {
    throwing(i);
  } catch (const std::exception&) {
  }
}

NOINLINE void pause_a_while() { usleep(2000); }

NOINLINE void work(int number, int rounds) {
  pthread_setname_np(pthread_self(), ("worker" + std::to_string(number)).c_str());
  for (int i = 0; i < rounds; ++i) {
    round_of(i);
    pause_a_while();
  }
}

NOINLINE void burst(long calls) {
  for (long i = 0; i < calls; ++i) quick_leaf(static_cast<int>(i));
}

NOINLINE void short_life(int i) { quick_leaf(i); }

NOINLINE int deeper(int levels) {
  char line[64];
  if (levels == 0 || std::fgets(line, sizeof line, stdin) == nullptr) return 0;
  const int below = deeper(levels - 1);
  asm volatile("" ::: "memory");
  return below + 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::puts("ready");
  std::fflush(stdout);
  char line[64];
  if (std::fgets(line, sizeof line, stdin) == nullptr) return 0;
  const long amount = std::atol(argv[2]);
  if (std::strcmp(argv[1], "paced") == 0) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back(work, i, static_cast<int>(amount));
    for (std::thread& thread : threads) thread.join();
    std::printf("leaf %ld\nstep %ld\nround_of %ld\nthrowing %ld\n", g_leaves.load(), g_steps.load(), g_rounds.load(),
                g_thrown.load());
  } else if (std::strcmp(argv[1], "fast") == 0) {
    timespec begin{}, end{};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    burst(amount);
    clock_gettime(CLOCK_MONOTONIC, &end);
    std::printf("quick_leaf %ld\nns %lld\n", amount,
                (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
  } else if (std::strcmp(argv[1], "churn") == 0) {
    for (long i = 0; i < amount; ++i) std::thread(short_life, static_cast<int>(i)).join();
  } else {
    std::printf("deeper %d\n", deeper(static_cast<int>(amount)));
  }
  std::fflush(stdout);
  std::fgets(line, sizeof line, stdin);
  return 0;
}
