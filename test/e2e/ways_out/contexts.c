/* Stacks of their own (makecontext, swapcontext): calls there go on where they were when the thread comes back. */
#include <ucontext.h>

#include "steps.h"

STEP(work)
STEP(scheduler)
STEP(after)

static ucontext_t home;
static ucontext_t contexts[2];
static char stacks[2][65536];

NOINLINE void yields(int self) {
  work();
  swapcontext(&contexts[self], &home);
  work();
  BARRIER();
}

NOINLINE void body(int self) {
  yields(self);
  yields(self);
  BARRIER();
}

NOINLINE void runs(int which) {
  scheduler();
  swapcontext(&home, &contexts[which]);
  BARRIER();
}

int main(void) {
  for (int i = 0; i < 2; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i];
    contexts[i].uc_stack.ss_size = sizeof stacks[i];
    contexts[i].uc_link = &home;
    makecontext(&contexts[i], (void (*)(void))body, 1, i);
  }
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 2; ++i) runs(i);
  after();
  return 0;
}
