// Traced functions whose time goes into libc, which is not traced, for the page's tests: one computes, one waits.
#include <string.h>
#include <time.h>

static char g_room[1 << 20];

static long cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

__attribute__((noinline)) void fill_room() {
  for (const long end = cpu_ms() + 150; cpu_ms() < end;)
    for (int i = 0; i < 50; ++i) memset(g_room, i, sizeof g_room);
}

__attribute__((noinline)) void wait_a_while() {
  timespec time{0, 30'000'000};
  nanosleep(&time, nullptr);
  g_room[8] = 1;
}

int main() {
  fill_room();
  wait_a_while();
  return g_room[7] == 100 ? 1 : 0;  // so that it is filled
}
