// Traced functions that spend their time in a library that is not. Each says how much CPU time its thread had in it.
//   program ORDER...   calls these, one after the other; "threads": two at once; "fork": one in a child; "fibers": two
//                      on stacks of their own; "waits": waits, for which it says the time on a wall's clock; "storm":
//                      two threads that wait for each other all the time
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <thread>

#include "library.h"

#define CALL __attribute__((noinline, noclone))

constexpr unsigned long kRounds = 300'000'000;

static unsigned long ns_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<unsigned long>(now.tv_sec) * 1'000'000'000UL + static_cast<unsigned long>(now.tv_nsec);
}

template <typename Work>
static void timed(const char* what, Work work, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  const unsigned long before = ns_of(clock);
  work();
  printf("%s %d %d %lu\n", what, getpid(), gettid(), ns_of(clock) - before);
  fflush(stdout);
}

CALL void call_first() {
  timed("first", [] { library_first(kRounds); });
}
CALL void call_second() {
  timed("second", [] { library_second(kRounds / 2); });
}
CALL void call_deep() {
  timed("deep", [] { library_deep(kRounds / 2, 5000); });
}
CALL void call_signal() {
  timed("signal", [] { library_signal(kRounds / 2); });
}
CALL void called_back(unsigned long rounds) {
  library_first(rounds);
  fflush(stdout);
}
CALL void call_back() {
  timed("back", [] { library_back(called_back, kRounds / 2); });
}
CALL void own_work() {
  timed("own", [] {
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < kRounds / 2; ++i) sum = sum + i;
  });
}

CALL void call_sleep() {
  timed(
      "sleep", [] { library_sleeps(20); }, CLOCK_MONOTONIC);
}
CALL void call_poll() {
  timed(
      "poll", [] { library_polls(30); }, CLOCK_MONOTONIC);
}
CALL void call_waits() {
  for (int i = 0; i < 5; ++i) {
    call_sleep();
    call_poll();
  }
}

CALL void answer(const int* from_to) {
  char byte = 0;
  while (read(from_to[0], &byte, 1) == 1 && write(from_to[1], &byte, 1) == 1) {
  }
}
CALL void call_storm() {
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) return;
  const int other[] = {there[0], back[1]};
  std::thread second(answer, other);
  char byte = 0;
  for (int i = 0; i < 50'000; ++i)
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return;
  close(there[1]);
  second.join();
}

static ucontext_t g_main, g_fibers[2];
static char g_stacks[2][65536];
CALL void fiber_work(int number) {
  number == 0 ? call_first() : call_second();
  number == 0 ? call_sleep() : call_poll();
}
CALL void call_fibers() {
  for (int i = 0; i < 2; ++i) {
    getcontext(&g_fibers[i]);
    g_fibers[i].uc_stack.ss_sp = g_stacks[i];
    g_fibers[i].uc_stack.ss_size = sizeof g_stacks[i];
    g_fibers[i].uc_link = &g_main;
    makecontext(&g_fibers[i], reinterpret_cast<void (*)()>(fiber_work), 1, i);
    swapcontext(&g_main, &g_fibers[i]);
  }
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "first") == 0) call_first();
    if (strcmp(argv[i], "second") == 0) call_second();
    if (strcmp(argv[i], "deep") == 0) call_deep();
    if (strcmp(argv[i], "signal") == 0) call_signal();
    if (strcmp(argv[i], "back") == 0) call_back();
    if (strcmp(argv[i], "own") == 0) own_work();
    if (strcmp(argv[i], "waits") == 0) call_waits();
    if (strcmp(argv[i], "storm") == 0) call_storm();
    if (strcmp(argv[i], "fibers") == 0) call_fibers();
    if (strcmp(argv[i], "drop") == 0 && setuid(65534) != 0) return 1;
    if (strcmp(argv[i], "threads") == 0) {
      std::thread first(call_first), second(call_second);
      first.join();
      second.join();
    }
    if (strcmp(argv[i], "fork") == 0) {
      const pid_t child = fork();
      if (child == 0) {
        call_second();
        _exit(0);
      }
      waitpid(child, nullptr, 0);
      call_first();
    }
  }
}
