/* Has a restartable sequence (rseq): a section of their descriptors. None is ever begun. */
#include <stdio.h>

__attribute__((section("__rseq_cs"), aligned(32))) const unsigned long descriptor[4] = {0};

__attribute__((noinline)) static int sum_to(int n) {
  volatile int sum = 0;
  for (int i = 0; i < n; ++i) sum += i;
  return sum;
}

int main(void) {
  printf("%lu\n", descriptor[1] + (unsigned long)sum_to(10));
  return 0;
}
