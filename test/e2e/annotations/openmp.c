/* Parallel regions of OpenMP, with LLVM's runtime, which tells ITT of them. */
#include <stdio.h>

int main(void) {
  long sum = 0;
  for (int round = 0; round < 5; ++round) {
#pragma omp parallel for reduction(+ : sum) num_threads(2)
    for (int i = 0; i < 100000; ++i) sum += i % 7;
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
      sum += 1;
#pragma omp barrier
    }
  }
  printf("%ld\n", sum);
}
