// Sleeps between calls. Prints CPU time of the process and time asleep, in milliseconds.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void leaf() { asm volatile(""); }
void nap() { usleep(300000); }

int main(int, char** argv) {
  const int naps = atoi(argv[1]);
  for (int i = 0; i < naps; ++i) {
    for (int n = 0; n < 10; ++n) leaf();
    nap();
  }
  printf("%ld %d\n", static_cast<long>(clock() / (CLOCKS_PER_SEC / 1000)), 300 * naps);
}
