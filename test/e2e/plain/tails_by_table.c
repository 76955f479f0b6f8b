// Tail calls by a table of functions, whose first entries are none, in a function that has a table of its own jumps.
#include <stdio.h>

struct operation {
  const char* name;
  long (*make)(long, long);
  long more[3];
};

__attribute__((noipa)) long add(long a, long b) { return a + b; }
__attribute__((noipa)) long subtract(long a, long b) { return a - b; }
__attribute__((noipa)) long check(long a) { return a & 1023; }

static const struct operation g_operations[] = {
    {"none", NULL, {0}}, {"nothing", NULL, {0}}, {"add", add, {0}}, {"subtract", subtract, {0}}};

__attribute__((noipa)) long make(unsigned long operation, long kind, long a) {
  if (check(a) > 1000) return -1;
  switch (kind) {
    case 0:
      return g_operations[operation].make(a, 1);
    case 1:
      return g_operations[operation].make(1, a);
    case 2:
      return check(a) * 3;
    case 3:
      return check(a + 5) - 7;
    case 4:
      return g_operations[operation].make(a * a, 17);
    case 5:
      return 9 - check(a >> 1);
    case 6:
      return g_operations[operation].make(check(a), check(a + 1)) + 1;
    default:
      return 0;
  }
}

int main(void) {
  long sum = 0;
  for (long i = 0; i < 800; ++i) sum = sum * 7 + make(2 + (unsigned long)(i & 1), i % 8, i);
  printf("%ld\n", sum);
  return 0;
}
