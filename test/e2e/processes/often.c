// Calls small functions for a second: more than any budget has room for.
#include <time.h>

volatile int sum;

__attribute__((noinline)) int little(int n, int m) {
  const int a = n * 7 + m, b = (n ^ m) * 5, c = (a >> 3) + b * 11;
  const int d = (a & b) * 13 + c, e = (c ^ d) + (d >> 5) * 3;
  sum = e;
  return a + b * 3 + c * 5 + d * 7 + e * 9;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(void) {
  const double end = now() + 1;
  while (now() < end)
    for (int i = 0; i < 1000; ++i) little(i, i + 1);
  return 0;
}
