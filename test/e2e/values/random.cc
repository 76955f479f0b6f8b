// Threads, a signal handler and a child call functions whose result tells their arguments: whatever is noted of a call
// must fit together, and be as much as there were calls.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define CALLED __attribute__((noinline, noclone))

CALLED long twice(long n, double d) {
  asm volatile("" : "+r"(n));
  return 2 * n + static_cast<long>(d);
}

CALLED int depth(int n) {
  asm volatile("" : "+r"(n));
  return n == 0 ? 0 : depth(n - 1) + 1;
}

void handler(int) {
  twice(1000000, 1);
  depth(2);
}

void work(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    twice(i, i + 0.5);
    depth(i % 5);
  }
}

int main(int, char** argv) {
  const int rounds = std::atoi(argv[1]);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval often{{0, 500}, {0, 500}};
  setitimer(ITIMER_PROF, &often, nullptr);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work, rounds);
  for (std::thread& t : threads) t.join();
  const pid_t child = fork();
  if (child == 0) {
    work(100);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}
