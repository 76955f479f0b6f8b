// Functions with the names of some of libc's, and other parameters: what is passed on the stack comes to them.
#include <stdio.h>

#define NOINLINE __attribute__((noinline))
#define PARAMETERS long a, long b, long c, long d, long e, long f, long g, long h
#define ARGUMENTS a, b, c, d, e, f, g, h

static volatile int sink;

NOINLINE static long connect(PARAMETERS) {
  for (sink = 0; sink < 4;) sink = sink + 1;
  return a + 2 * b + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g + 17 * h;
}
NOINLINE static long send(PARAMETERS) {
  for (sink = 0; sink < 3;) sink = sink + 1;
  return connect(ARGUMENTS);
}
NOINLINE static long begin(PARAMETERS) {
  for (sink = 0; sink < 2;) sink = sink + 1;
  return send(ARGUMENTS);
}

int main(int argc, char** argv) {
  (void)argv;
  printf("%ld %ld\n", begin(argc, 2, 3, 4, 5, 6, 7, 8), begin(8, 7, 6, 5, 4, 3, 2, argc));
  return 0;
}
