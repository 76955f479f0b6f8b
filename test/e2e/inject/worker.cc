// Started plainly, it computes and checks itself while karst attaches: "ready", then until its standard input ends.
// Each thread keeps a sum in integers, one in floating point and errno, and ends with "wrong" if one differs.
//   worker WAY: compute (no system calls), sleep, poll, epoll, malloc, pause (a timer's signals end it)
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

std::atomic<bool> g_stop{false};
std::atomic<long> g_rounds{0};
std::atomic<long> g_signals{0};
const int g_epoll = epoll_create1(EPOLL_CLOEXEC);  // before "ready": descriptors are counted from there

__attribute__((noinline)) unsigned step(unsigned x) { return x * 1664525U + 1013904223U; }
__attribute__((noinline)) double fraction(double x) { return x * 0.75 + 0.125; }

void wrong(const char* what, long got) {
  printf("wrong %s %ld\n", what, got);
  fflush(stdout);
  _exit(3);
}

unsigned whole(int n) {
  unsigned x = 1;
  for (int i = 0; i < n; ++i) x = step(x);
  return x;
}
double broken(int n) {
  double x = 0.3;
  for (int i = 0; i < n; ++i) x = fraction(x) + 1.0 / (i + 1);
  return x;
}

void wait(const char* way) {
  if (strcmp(way, "sleep") == 0) {
    timespec time{0, 3'000'000};
    if (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr) != 0) wrong("sleep", errno);
  } else if (strcmp(way, "poll") == 0) {
    if (const int n = poll(nullptr, 0, 3); n != 0) wrong("poll", errno);
  } else if (strcmp(way, "epoll") == 0) {
    epoll_event event{};
    if (const int n = epoll_wait(g_epoll, &event, 1, 3); n != 0) wrong("epoll_wait", errno);
  } else if (strcmp(way, "malloc") == 0) {
    for (std::size_t i = 1; i < 100; ++i) free(malloc(i * 100));
  } else if (strcmp(way, "pause") == 0) {
    errno = 0;
    if (pause() != -1 || errno != EINTR) wrong("pause", errno);
  }
}

void work(const char* way) {
  const unsigned true_sum = whole(500);
  const double true_fraction = broken(500);
  while (!g_stop) {
    errno = 77;
    if (whole(500) != true_sum) wrong("sum", 0);
    if (broken(500) != true_fraction) wrong("fraction", 0);
    if (errno != 77) wrong("errno", errno);
    wait(way);
    ++g_rounds;
  }
}

int main(int, char** argv) {
  const char* way = argv[1];
  if (strcmp(way, "pause") == 0) {
    signal(SIGALRM, [](int) { ++g_signals; });
    const itimerval every{{0, 3000}, {0, 3000}};
    setitimer(ITIMER_REAL, &every, nullptr);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    std::thread reader([mask] {
      pthread_sigmask(SIG_BLOCK, &mask, nullptr);
      puts("ready");
      fflush(stdout);
      while (getchar() != EOF) {
      }
      g_stop = true;
    });
    work(way);
    reader.join();
  } else {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back(work, way);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    g_stop = true;
    for (std::thread& t : threads) t.join();
  }
  printf("right %ld\n", g_rounds.load());
}
