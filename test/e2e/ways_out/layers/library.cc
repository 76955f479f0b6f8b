#include "../steps.h"

STEP(library_before)

NOINLINE void library_throws() {
  library_before();
  throw 1;
}
