// Tail calls of which nobody knows whether they pass something on the stack, or that do. Every 100th takes 5 ms in code
// that is not traced.
#include <stdio.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))
volatile int sink;
static struct timespec none, five_ms = {0, 5000000};
int (*volatile pointer)(const struct timespec*, struct timespec*) = nanosleep;
typedef int Seven(const struct timespec*, long, long, long, long, long, long);

__attribute__((noinline, no_instrument_function, patchable_function_entry(0))) int sleeps(const struct timespec* t,
                                                                                          long b, long c, long d,
                                                                                          long e, long f, long g) {
  return nanosleep(t, NULL) + (int)(b + c + d + e + f + g);
}
Seven* volatile seven = sleeps;

NOINLINE int by_pointer(int i) {
  sink = i;
  return pointer(i % 100 == 99 ? &five_ms : &none, NULL);
}
NOINLINE int with_seven(int i, long b, long c, long d, long e, long f, long g) {
  sink = i;
  return seven(i % 100 == 98 ? &five_ms : &none, b, c, d, e, f, g + 1);
}
NOINLINE int next(int i) {
  sink = i;
  return i;
}

int main(void) {
  int r = 0;
  for (int i = 0; i < 300; ++i) {
    r += by_pointer(i);
    r += next(i);
    r += with_seven(i, 1, 2, 3, 4, 5, 6);
    r += next(i);
  }
  printf("%d\n", r);
  return 0;
}
