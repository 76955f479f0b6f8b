// Threads that compute and never wait: each until its own CPU clock says so many milliseconds.
#include <ctime>
#include <thread>
#include <vector>

static long g_milliseconds;

static long cpu_milliseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

__attribute__((noinline)) void spin() {
  while (cpu_milliseconds() < g_milliseconds) {
  }
}

int main() {
  g_milliseconds = 500;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([] { spin(); });
  for (std::thread& t : threads) t.join();
}
