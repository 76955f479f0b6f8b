/* Many ways out of one function: a huge switch with returns, and computed gotos. */
#include "steps.h"

STEP(work)
STEP(after)

NOINLINE int switches(int x) {
  switch (x) {
#define CASE(n)               \
  case n:                     \
    if ((n) % 3 == 0) work(); \
    return (n) * (n);
#define CASES(n) CASE(n) CASE(n + 1) CASE(n + 2) CASE(n + 3) CASE(n + 4) CASE(n + 5) CASE(n + 6) CASE(n + 7)
    CASES(0) CASES(8) CASES(16) CASES(24) CASES(32) CASES(40) CASES(48) CASES(56) default : after();
  }
  BARRIER();
  return 0;
}

NOINLINE int interprets(const unsigned char* code) {
  static void* const labels[] = {&&calls, &&skips, &&ends, &&returns};
  goto* labels[*code++];
calls:
  work();
  goto* labels[*code++];
skips:
  BARRIER();
  goto* labels[*code++];
ends:
  after();
  return 1;
returns:
  return 0;
}

int main(void) {
  static const unsigned char first[] = {1, 0, 1, 0, 2};
  static const unsigned char second[] = {0, 3};
  switches(3);
  switches(4);
  switches(63);
  switches(100);
  interprets(first);
  interprets(second);
  after();
  return 0;
}
