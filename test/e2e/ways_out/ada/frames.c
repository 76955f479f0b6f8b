/* Frames of C between Ada's. */
#include "../steps.h"

STEP(handled)

NOINLINE void c_passes(void (*call)(void)) {
  call();
  BARRIER();
}
