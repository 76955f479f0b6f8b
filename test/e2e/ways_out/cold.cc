// Functions whose unlikely part lies elsewhere: they throw from there, have cleanups and handlers there.
#include "steps.h"

STEP(before)
STEP(cleanup)
STEP(handler)
STEP(after)

struct Guard {
  NOINLINE ~Guard() {
    cleanup();
    BARRIER();
  }
};

NOINLINE int throws(int x) {
  before();
  if (__builtin_expect(x > 1, 0)) {
    after();
    throw x;
  }
  BARRIER();
  return x;
}

NOINLINE int guarded(int x) {
  Guard guard;
  return throws(x) + 1;
}

NOINLINE int catches(int x) {
  try {
    return guarded(x);
  } catch (int) {
    handler();
    if (__builtin_expect(x == 3, 0)) {
      after();
      throw;
    }
  }
  BARRIER();
  return 0;
}

int main() {
  catches(1);
  catches(2);
  try {
    catches(3);
  } catch (int) {
    handler();
  }
  after();
  return 0;
}
