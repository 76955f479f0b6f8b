// Calls small functions for a second: more than any budget has room for.
#include <time.h>

volatile int sum;

__attribute__((noinline)) void little(int n) {
  for (int i = 0; i < 4; ++i) sum += n * i;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(void) {
  const double end = now() + 1;
  while (now() < end)
    for (int i = 0; i < 1000; ++i) little(i);
  return 0;
}
