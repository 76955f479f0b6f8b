// Linked with -static-libgcc: the unwinder is the program's own.
#include "../steps.h"

STEP(handler)
STEP(after)

NOINLINE void throws() { throw 1; }

NOINLINE void catches() {
  try {
    throws();
  } catch (int) {
    handler();
  }
  BARRIER();
}

int main() {
  catches();
  after();
  return 0;
}
