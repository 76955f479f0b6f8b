/* Fibers on stacks of makecontext: with and without the marks (SILENT), by Tracy's macros, through a fork, while
 * tracing is off.
 *
 * usage: contexts [fork|off]
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef TRACY_ENABLE
#include <tracy/TracyC.h>
#define ENTER(i) TracyCFiberEnter(names[i])
#define LEAVE TracyCFiberLeave
#elif defined(SILENT)
#include "karst/karst.h"
#define ENTER(i)
#define LEAVE
#else
#include "karst/karst.h"
#define ENTER(i) karst_fiber_enter((uintptr_t)&contexts[i], names[i]);
#define LEAVE karst_fiber_leave();
#endif

#define NOINLINE __attribute__((noinline))
#define BARRIER() __asm__ volatile("" ::: "memory")

static const char* const names[2] = {"ping", "pong"};
static ucontext_t home;
static ucontext_t contexts[2];
static char stacks[2][1 << 18];
static const char* what;

NOINLINE void inner(void) { BARRIER(); }

NOINLINE void yields(int self) {
  inner();
  LEAVE swapcontext(&contexts[self], &home);
  inner();
  BARRIER();
}

NOINLINE void child(void) {
  inner();
  BARRIER();
}

NOINLINE void body(int self) {
  yields(self);
  if (self == 0 && strcmp(what, "fork") == 0) {
    int pid = fork();
    if (pid == 0) child();
    if (pid > 0) waitpid(pid, 0, 0);
  }
  if (self == 1 && strcmp(what, "off") == 0) karst_disable();
  yields(self);
  if (self == 0 && strcmp(what, "off") == 0) karst_enable();
  inner();
  BARRIER();
}

KARST_NOTRACE NOINLINE void starts(int self) {
  body(self);
  LEAVE
}

NOINLINE void runs(int which) {
  ENTER(which) swapcontext(&home, &contexts[which]);
  BARRIER();
}

int main(int argc, char** argv) {
  what = argc > 1 ? argv[1] : "";
  for (int i = 0; i < 2; ++i) {
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = stacks[i];
    contexts[i].uc_stack.ss_size = sizeof stacks[i];
    contexts[i].uc_link = &home;
    makecontext(&contexts[i], (void (*)(void))starts, 1, i);
  }
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 2; ++i) runs(i);
  return 0;
}
