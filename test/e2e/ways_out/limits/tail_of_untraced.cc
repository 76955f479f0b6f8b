// A tail call of a function that is not traced: the call beside it is another's.
#include "../steps.h"

STEP(within)
STEP(beside)

UNTRACED void untraced() { BARRIER(); }

NOINLINE void tail() {
  within();
  untraced();
}

int main() {
  tail();
  beside();
  return 0;
}
