/* longjmp and its like: over traced and untraced frames, in recursion, again and again, out of signal handlers. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "steps.h"

STEP(before)
STEP(back)
STEP(after)
STEP(never)

static jmp_buf plain;
static jmp_buf other;
static sigjmp_buf with_mask;

NOINLINE void jumps(int depth) {
  before();
  if (depth == 0) longjmp(plain, 1);
  jumps(depth - 1);
  never();
}

UNTRACED void untraced_jumps(void) { longjmp(plain, 2); }

NOINLINE void calls_untraced(void) {
  untraced_jumps();
  never();
}

NOINLINE void sets_and_comes_back(void) {
  if (setjmp(plain) == 0)
    jumps(2);
  else
    back();
  after();
  BARRIER();
}

UNTRACED void untraced_sets(void) {
  if (setjmp(plain) == 0) calls_untraced();
  back();
  BARRIER();
}

NOINLINE void many_times(void) {
  volatile int rounds = 0;
  if (setjmp(plain) != 0) back();
  if (rounds++ < 3) jumps(0);
  after();
  BARRIER();
}

/* Two places at once; the jump to the outer one leaves the inner function, too. */
NOINLINE void inner(void) {
  if (setjmp(other) == 0) {
    before();
    longjmp(other, 1);
  }
  back();
  longjmp(plain, 1);
}

NOINLINE void outer(void) {
  if (setjmp(plain) == 0) inner();
  after();
  BARRIER();
}

/* No jump: the place lies in the past when the function returns, and another one has the same stack pointer. */
NOINLINE void sets_only(void) {
  if (setjmp(plain) != 0) never();
  BARRIER();
}

NOINLINE void handler(int signal) {
  (void)signal;
  before();
  siglongjmp(with_mask, 1);
}

NOINLINE void raises(void) {
  raise(SIGUSR1);
  never();
}

NOINLINE void out_of_a_handler(int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGUSR1, &action, NULL);
  if (sigsetjmp(with_mask, 1) == 0) raises();
  back();
  BARRIER();
}

NOINLINE void by_contexts(void) {
  ucontext_t context;
  volatile int rounds = 0;
  getcontext(&context);
  back();
  if (rounds++ < 2) setcontext(&context);
  after();
  BARRIER();
}

int main(void) {
  static char alternate[65536];
  stack_t stack;
  memset(&stack, 0, sizeof stack);
  stack.ss_sp = alternate;
  stack.ss_size = sizeof alternate;
  sets_and_comes_back();
  untraced_sets();
  after();
  many_times();
  outer();
  sets_only();
  outer();
  out_of_a_handler(0);
  sigaltstack(&stack, NULL);
  out_of_a_handler(SA_ONSTACK);
  by_contexts();
  after();
  return 0;
}
