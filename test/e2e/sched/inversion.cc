// A priority inversion on one CPU. The low thread's collect() wakes the high one, which runs grab() and wakes the
// middle one, which runs sweep(): the low one is kept off its CPU by both, for the longest time by the second. Says
// what each took by its own thread's clock, and by the wall's, in ns. Exits with 77 where it may not set priorities.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static sem_t g_high_may, g_middle_may;
static volatile unsigned g_sink;

__attribute__((always_inline)) static inline int64_t now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

struct Took {
  int64_t cpu, wall;
};
static Took g_grab, g_sweep;

// Inlined: no call of its own.
__attribute__((always_inline)) static inline void compute(int64_t ns, Took* took) {
  const int64_t wall = now(CLOCK_MONOTONIC);
  const int64_t cpu = now(CLOCK_THREAD_CPUTIME_ID);
  while (now(CLOCK_THREAD_CPUTIME_ID) - cpu < ns) g_sink = g_sink * 1664525 + 1013904223;
  took->cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
  took->wall = now(CLOCK_MONOTONIC) - wall;
}

__attribute__((noinline)) void grab() {
  compute(6'000'000, &g_grab);
  sem_post(&g_middle_may);
  asm volatile("");
}

__attribute__((noinline)) void sweep() {
  compute(40'000'000, &g_sweep);
  asm volatile("");
}

__attribute__((noinline)) void collect(bool inverted) {
  Took took;
  compute(100'000, &took);
  if (inverted) sem_post(&g_high_may);
  compute(100'000, &took);
}

static void be(const char* name, int priority) {
  pthread_setname_np(pthread_self(), name);
  struct sched_param param = {};
  param.sched_priority = priority;
  if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param) != 0) exit(77);
}

static void* high(void*) {
  be("high", 30);
  sem_wait(&g_high_may);
  grab();
  return nullptr;
}

static void* middle(void*) {
  be("middle", 20);
  sem_wait(&g_middle_may);
  sweep();
  return nullptr;
}

static void* low(void*) {
  be("low", 10);
  for (int i = 0; i < 40; ++i) collect(i == 30);
  return nullptr;
}

int main() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
  sem_init(&g_high_may, 0, 0);
  sem_init(&g_middle_may, 0, 0);
  // Above the others, so that they wait for their words before the low one begins.
  be("main", 40);
  pthread_t threads[3];
  void* (*const bodies[])(void*) = {high, middle, low};
  for (int i = 0; i < 3; ++i) {
    if (pthread_create(&threads[i], nullptr, bodies[i], nullptr) != 0) return 1;
    const struct timespec pause = {0, 5'000'000};
    if (i < 2) nanosleep(&pause, nullptr);
  }
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  printf("grab %lld %lld\nsweep %lld %lld\n", (long long)g_grab.cpu, (long long)g_grab.wall, (long long)g_sweep.cpu,
         (long long)g_sweep.wall);
}
