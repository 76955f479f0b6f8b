// The compiler's own longjmp calls nothing.
#include "../steps.h"

STEP(back)
STEP(after)

void* place[5];

NOINLINE void jumps() { __builtin_longjmp(place, 1); }

NOINLINE void comes_back() {
  if (__builtin_setjmp(place) == 0)
    jumps();
  else
    back();
  BARRIER();
}

int main() {
  comes_back();
  after();
  return 0;
}
