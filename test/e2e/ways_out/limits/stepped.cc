// What gdb steps through: a traced call, twice; the first time the hook takes its slow way to get a block.
#include "../steps.h"

NOINLINE void leaf() { BARRIER(); }

UNTRACED void calls() {
  leaf();
  BARRIER();
}

int main() {
  calls();
  calls();
  return 0;
}
