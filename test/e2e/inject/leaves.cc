// Leaves calls by exceptions and by longjmp, again and again, until a line comes. Says "right" and a number as it ends.
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define BARRIER() __asm__ volatile("" ::: "memory")

static jmp_buf g_place;

NOINLINE void after() { BARRIER(); }

NOINLINE void throws(int number) {
  BARRIER();
  throw number;
}

NOINLINE void passes(int number) {
  throws(number);
  BARRIER();
}

NOINLINE int catches(int number) {
  try {
    passes(number);
  } catch (int caught) {
    after();
    BARRIER();
    return caught;
  }
  return 0;
}

NOINLINE void jumps(int number) {
  BARRIER();
  longjmp(g_place, number);
}

NOINLINE void between(int number) {
  jumps(number);
  BARRIER();
}

NOINLINE int returns_twice(int number) {
  if (const int got = setjmp(g_place)) {
    after();
    BARRIER();
    return got;
  }
  between(number);
  return 0;
}

NOINLINE bool round_of(int number) {
  const bool right = catches(number) == number && returns_twice(number) == number;
  BARRIER();
  return right;
}

int main() {
  printf("ready\n");
  fflush(stdout);
  pollfd input = {0, POLLIN, 0};
  for (int number = 1; poll(&input, 1, 1) == 0; number = number % 1000 + 1)
    for (int i = 0; i < 20; ++i)
      if (!round_of(number)) return 1;
  printf("right %d\n", 1);
  return 0;
}
