// Functions that end with a tail call on a condition, for clang at -Os, -Oz and minsize (SMALL). Prints how often each
// kind of condition held, and a sum that depends on all of them.
#include <stdint.h>
#include <stdio.h>

#ifndef SMALL
#define SMALL
#endif
#define NOINLINE __attribute__((noinline))

static uint64_t sum = 1;
static unsigned calls;

NOINLINE static void sink(long a, long b) {
  sum = sum * 31 + (uint64_t)(a ^ b);
  ++calls;
  __asm__ volatile("" : "+m"(sum));
}

#define TAIL(name, type, condition)                      \
  NOINLINE SMALL static void if_##name(type a, type b) { \
    if (condition) sink((long)a, (long)b);               \
  }
TAIL(less, int, a < b)
TAIL(less_equal, int, a <= b)
TAIL(greater, long, a > b)
TAIL(greater_equal, long, a >= b)
TAIL(below, unsigned, a < b)
TAIL(below_equal, unsigned, a <= b)
TAIL(above, unsigned long, a > b)
TAIL(above_equal, unsigned long, a >= b)
TAIL(equal, int, a == b)
TAIL(not_equal, int, a != b)
TAIL(negative, int, (a ^ b) < 0)
TAIL(not_negative, int, (a ^ b) >= 0)
TAIL(overflow, int, __builtin_sadd_overflow(a << 29, b << 29, &(int){0}))
TAIL(no_overflow, int, !__builtin_sadd_overflow(a << 29, b << 29, &(int){0}))
TAIL(unordered, double, __builtin_isunordered(b == 3 ? a : b / b, a))
TAIL(carry, unsigned, __builtin_add_overflow(a << 30, b << 30, &(unsigned){0}))
TAIL(bit, int, a & 4)

// Several in one function, that share a comparison.
NOINLINE static void first(long a, long b) { sink(a + 1, b); }
NOINLINE static void second(long a, long b) { sink(a + 2, b); }
NOINLINE SMALL static void if_some(long a, long b) {
  if (a < b) {
    first(a, b);
    return;
  }
  if (a > b) {
    second(a, b);
    return;
  }
  sum += 7;
}

NOINLINE static void each(int a, int b) {
#define DO(name)                                \
  do {                                          \
    const unsigned before = calls;              \
    if_##name(a, b);                            \
    if (calls != before) sum = sum * 3 + calls; \
  } while (0)
  DO(less);
  DO(less_equal);
  DO(greater);
  DO(greater_equal);
  DO(below);
  DO(below_equal);
  DO(above);
  DO(above_equal);
  DO(equal);
  DO(not_equal);
  DO(negative);
  DO(not_negative);
  DO(overflow);
  DO(no_overflow);
  DO(unordered);
  DO(carry);
  DO(bit);
  DO(some);
}

int main(void) {
  for (int a = -6; a < 6; ++a)
    for (int b = -6; b < 6; ++b) each(a, b);
  printf("%u %llu\n", calls, (unsigned long long)sum);
  return 0;
}
