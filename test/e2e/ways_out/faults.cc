// Exceptions thrown by the handlers of faults (-fnon-call-exceptions), on the same stack and on another.
#include "handlers.h"

STEP(before)
STEP(handler)
STEP(cleanup)
STEP(after)
STEP(never)

struct Guard {
  NOINLINE ~Guard() {
    cleanup();
    BARRIER();
  }
};

NOINLINE void on_fault(int) {
  before();
  throw 1;
}

int* volatile nowhere = nullptr;

NOINLINE int faults() {
  before();
  return *nowhere;
}

NOINLINE void guarded() {
  Guard guard;
  faults();
  never();
}

NOINLINE void catches() {
  try {
    guarded();
  } catch (int) {
    handler();
  }
  after();
  BARRIER();
}

int main() {
  have_other_stack();
  handle(SIGSEGV, on_fault, 0);
  catches();
  handle(SIGSEGV, on_fault, SA_ONSTACK);
  catches();
  after();
  return 0;
}
