// Calls with each of the marks: unwound, jumped, tail, and open, as the process ends in them.
#include <unistd.h>

#include <csetjmp>

#include "../steps.h"

STEP(plain)

NOINLINE void throws() { throw 1; }
NOINLINE void passes() {
  throws();
  BARRIER();
}

jmp_buf place;
NOINLINE void jumps() { longjmp(place, 1); }
NOINLINE void passes_jump() {
  jumps();
  BARRIER();
}

NOINLINE void last() { BARRIER(); }
NOINLINE void tail() {
  plain();
  last();
}

NOINLINE void ends() {
  plain();
  _exit(0);
}

int main() {
  try {
    passes();
  } catch (int) {
  }
  if (setjmp(place) == 0) passes_jump();
  for (int i = 0; i < 3; ++i) tail();
  plain();
  ends();
  return 0;
}
