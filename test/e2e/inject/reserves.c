// Reserves 8 TiB, which lie below its libraries: as InnoDB and sanitizers do.
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) static double work(double n) {
  double sum = 0;
  for (int i = 0; i < 50; ++i) sum += cbrt(n + i);
  return sum;
}

int main(void) {
  mmap(NULL, 1UL << 43, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  puts("ready");
  fflush(stdout);
  const double expected = work(1);
  int same = 1;
  for (int i = 0; i < 100; ++i) {
    usleep(10000);
    same = same && work(1) == expected;
  }
  printf("%s 100\n", same ? "right" : "wrong");
  return 0;
}
