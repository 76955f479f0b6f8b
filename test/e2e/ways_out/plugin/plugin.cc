#include "../steps.h"

STEP(handler)
STEP(cleanup)

struct Guard {
  NOINLINE ~Guard() {
    cleanup();
    BARRIER();
  }
};

NOINLINE void throws() { throw 1; }

NOINLINE void guarded() {
  Guard guard;
  throws();
}

extern "C" NOINLINE void run() {
  try {
    guarded();
  } catch (int) {
    handler();
  }
  BARRIER();
}
