/* A few lines around a library. With MANY there are functions that nobody calls, too, and it takes a while. */
#include <time.h>

int work_loop(int n);

#ifdef MANY
#define FOUR(name)                                    \
  int name##0(int n) { return work_loop(n) + n; }     \
  int name##1(int n) { return work_loop(n) - n; }     \
  int name##2(int n) { return work_loop(n) * n + 1; } \
  int name##3(int n) { return work_loop(n) / 3 + n; }
#define SIXTEEN(name) FOUR(name##0) FOUR(name##1) FOUR(name##2) FOUR(name##3)
#define MANY_FUNCTIONS SIXTEEN(a) SIXTEEN(b) SIXTEEN(c)
MANY_FUNCTIONS
#endif

int main(void) {
  int sum = work_loop(3);
#ifdef MANY
  for (clock_t begin = clock(); clock() - begin < CLOCKS_PER_SEC / 10;) sum += work_loop(1000);
#endif
  return sum == 0;
}
