// Two functions that are called once: what is long depends on the range that is asked about.
#include <time.h>

__attribute__((noinline)) static void rest(long ms) {
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0) continue;
}
__attribute__((noinline)) void load(void) { rest(700); }
__attribute__((noinline)) void once(void) { rest(3); }

int main(void) {
  load();
  once();
  return 0;
}
