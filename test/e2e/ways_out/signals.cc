// Signal handlers on both kinds of stack, exceptions thrown out of them, and a stack that overflows and is left from
// its handler.
#include <csetjmp>

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

// Through a pointer that may throw: the C library says that raise() does not.
int (*volatile raise_signal)(int) = raise;

NOINLINE void on_user(int) {
  before();
  BARRIER();
}

NOINLINE void raises() {
  raise_signal(SIGUSR1);
  after();
  BARRIER();
}

NOINLINE void on_user_throws(int) {
  before();
  throw 1;
}

NOINLINE void guarded() {
  Guard guard;
  raises();
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

sigjmp_buf place;

NOINLINE void on_overflow(int) {
  before();
  siglongjmp(place, 1);
}

UNTRACED int eats_stack(int depth) {
  volatile char frame[4096];
  frame[depth % 4096] = 1;
  const int below = eats_stack(depth + 1);
  return below + frame[0];
}

NOINLINE void overflows() {
  eats_stack(0);
  never();
}

NOINLINE void survives_overflow() {
  if (sigsetjmp(place, 1) == 0) overflows();
  after();
  BARRIER();
}

int main() {
  static char alternate[65536];
  stack_t stack{};
  stack.ss_sp = alternate;
  stack.ss_size = sizeof alternate;
  sigaltstack(&stack, nullptr);
  handle(SIGUSR1, on_user, 0);
  raises();
  handle(SIGUSR1, on_user, SA_ONSTACK);
  raises();
  handle(SIGUSR1, on_user_throws, 0);
  catches();
  handle(SIGUSR1, on_user_throws, SA_ONSTACK);
  catches();
  handle(SIGSEGV, on_overflow, SA_ONSTACK);
  survives_overflow();
  after();
  return 0;
}
