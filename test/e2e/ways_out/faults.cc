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
  static char alternate[65536];
  stack_t stack{};
  stack.ss_sp = alternate;
  stack.ss_size = sizeof alternate;
  sigaltstack(&stack, nullptr);
  handle(SIGSEGV, on_fault, 0);
  catches();
  handle(SIGSEGV, on_fault, SA_ONSTACK);
  catches();
  after();
  return 0;
}
