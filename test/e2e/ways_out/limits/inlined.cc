// An exception through a function that became part of its caller: there is no frame to leave.
#include "../steps.h"

STEP(handler)
STEP(after)

NOINLINE void throws() { throw 1; }

__attribute__((always_inline)) inline void inlined() { throws(); }

NOINLINE void catches() {
  try {
    inlined();
  } catch (int) {
    handler();
  }
  after();
  BARRIER();
}

int main() {
  catches();
  after();
  return 0;
}
