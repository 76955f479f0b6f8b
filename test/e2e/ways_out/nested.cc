// Exceptions within exceptions: thrown and caught in cleanups and handlers, rethrown, replaced.
#include "steps.h"

STEP(handler)
STEP(inner_handler)
STEP(outer_handler)
STEP(after)
STEP(never)

NOINLINE void thrower(int what) { throw what; }

struct CatchesWithin {
  NOINLINE ~CatchesWithin() {
    try {
      thrower(10);
    } catch (int) {
      inner_handler();
    }
    BARRIER();
  }
};

struct ThrowsOut {
  NOINLINE ~ThrowsOut() noexcept(false) { thrower(20); }
};

NOINLINE void unwinds_over_a_catching_destructor() {
  CatchesWithin guard;
  thrower(1);
  never();
}

NOINLINE void destructor_throws_while_another_is_handled() {
  try {
    thrower(1);
  } catch (int) {
    handler();
    try {
      ThrowsOut guard;
      after();
    } catch (int) {
      inner_handler();
    }
    after();
  }
  BARRIER();
}

NOINLINE void rethrows() {
  try {
    thrower(2);
  } catch (int) {
    handler();
    throw;
  }
}

NOINLINE void replaces() {
  try {
    rethrows();
  } catch (int) {
    handler();
    throw 3L;
  }
}

int main() {
  try {
    unwinds_over_a_catching_destructor();
  } catch (int) {
    outer_handler();
  }
  destructor_throws_while_another_is_handled();
  try {
    replaces();
  } catch (long) {
    outer_handler();
  }
  after();
  return 0;
}
