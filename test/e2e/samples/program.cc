// Traced functions that spend their time in a library that is not. Each says how much CPU time its thread had in it.
//   program ORDER...   calls these, one after the other; "threads": two at once; "fork": one in a child
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <thread>

#include "library.h"

#define CALL __attribute__((noinline, noclone))

constexpr unsigned long kRounds = 300'000'000;

static unsigned long cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<unsigned long>(now.tv_sec) * 1'000'000'000UL + static_cast<unsigned long>(now.tv_nsec);
}

template <typename Work>
static void timed(const char* what, Work work) {
  const unsigned long before = cpu_ns();
  work();
  printf("%s %d %d %lu\n", what, getpid(), gettid(), cpu_ns() - before);
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

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "first") == 0) call_first();
    if (strcmp(argv[i], "second") == 0) call_second();
    if (strcmp(argv[i], "deep") == 0) call_deep();
    if (strcmp(argv[i], "signal") == 0) call_signal();
    if (strcmp(argv[i], "back") == 0) call_back();
    if (strcmp(argv[i], "own") == 0) own_work();
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
