// Caught at once, through frames with and without cleanups, in recursion, by type, and not at all in between.
#include "steps.h"

STEP(before)
STEP(after)
STEP(handler)
STEP(cleanup)
STEP(never)

struct Guard {
  NOINLINE ~Guard() {
    cleanup();
    BARRIER();
  }
};

NOINLINE void thrower(int what) {
  before();
  if (what == 1) throw 1;
  if (what == 2) throw 2L;
  never();
}

NOINLINE void through(int what) {
  thrower(what);
  never();
}

NOINLINE void guarded(int what) {
  Guard guard;
  through(what);
  never();
}

NOINLINE void recursive(int depth) {
  Guard guard;
  if (depth == 0)
    thrower(1);
  else
    recursive(depth - 1);
  never();
}

// Catches ints alone: longs pass.
NOINLINE void catches_int(int what) {
  try {
    guarded(what);
  } catch (int) {
    handler();
  }
  after();
  BARRIER();
}

NOINLINE void catches_all() {
  try {
    catches_int(2);
  } catch (...) {
    handler();
  }
  after();
  BARRIER();
}

// Every other level catches and goes on.
NOINLINE void climbs(int depth) {
  try {
    if (depth == 0) thrower(1);
    climbs(depth - 1);
    after();
  } catch (int) {
    handler();
    if (depth % 2 == 0) throw;
  }
  BARRIER();
}

int main() {
  catches_int(1);
  catches_all();
  try {
    recursive(3);
  } catch (int) {
    handler();
  }
  try {
    thrower(1);
  } catch (int) {
    handler();
  }
  climbs(3);
  after();
  return 0;
}
