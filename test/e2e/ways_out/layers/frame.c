/* A frame of C, which knows of no exceptions. */
#include "../steps.h"

NOINLINE void c_passes(void (*next)(void)) {
  next();
  BARRIER();
}
