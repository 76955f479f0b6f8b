// Frames without tracing: they throw, they catch, they are passed over; among them libc's qsort and libstdc++'s new.
#include <cstdlib>
#include <new>

#include "steps.h"

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

NOINLINE void traced(int depth) {
  Guard guard;
  if (depth == 0) throw 1;
  traced(depth - 1);
  never();
}

UNTRACED void untraced_passes(int depth) {
  traced(depth);
  never();
}

UNTRACED void untraced_catches(int depth) {
  try {
    traced(depth);
  } catch (int) {
    handler();
  }
  after();
  BARRIER();
}

UNTRACED void untraced_throws() { throw 1; }

NOINLINE void calls_thrower() {
  Guard guard;
  untraced_throws();
  never();
}

NOINLINE int compares(const void* a, const void* b) {
  if (*static_cast<const int*>(a) == 3 || *static_cast<const int*>(b) == 3) throw 1;
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

NOINLINE void sorts() {
  int values[] = {3, 2};
  std::qsort(values, 2, sizeof values[0], compares);
  never();
}

NOINLINE void library_throws() {
  Guard guard;
  static_cast<void>(::operator new (~std::size_t{0} >> 1));
  never();
}

// Recursion through a catcher that nobody sees: which of the equal frames is left is for their places to tell.
NOINLINE void down(int depth);
UNTRACED void catches_below(int depth) {
  try {
    down(depth);
  } catch (int) {
    handler();
  }
}
NOINLINE void down(int depth) {
  if (depth == 0) throw 1;
  if (depth == 2)
    catches_below(depth - 1);
  else
    down(depth - 1);
  after();
  BARRIER();
}

int main() {
  try {
    untraced_passes(1);
  } catch (int) {
    handler();
  }
  untraced_catches(1);
  after();
  try {
    calls_thrower();
  } catch (int) {
    handler();
  }
  try {
    sorts();
  } catch (int) {
    handler();
  }
  try {
    library_throws();
  } catch (...) {
    handler();
  }
  down(4);
  after();
  return 0;
}
