// Exceptions through a traced function in C, a library without tracing, and a traced one below them.
#include "../steps.h"

extern "C" void c_passes(void (*next)());
extern "C" void stranger_passes(void (*next)());
extern "C" void stranger_catches(void (*next)());
void library_throws();

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

NOINLINE void by_c() {
  Guard guard;
  c_passes(library_throws);
  never();
}

NOINLINE void by_stranger() {
  stranger_passes(by_c);
  never();
}

NOINLINE void caught_by_stranger() {
  stranger_catches(by_c);
  after();
  BARRIER();
}

int main() {
  try {
    by_stranger();
  } catch (int) {
    handler();
  }
  caught_by_stranger();
  after();
  return 0;
}
