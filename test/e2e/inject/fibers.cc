// Two fibers on stacks of their own, which a function of libco's name switches to, until a line comes. Says "right" and
// a number as it ends.
#include <poll.h>
#include <stdio.h>

#include "../fibers/stack_switch.h"

#define NOINLINE __attribute__((noinline, noclone))
#define BARRIER() __asm__ volatile("" ::: "memory")

/// By this name Karst knows that stacks are switched.
extern "C" NOINLINE void co_switch(void** from, void* to) {
  switch_stack(from, to);
  BARRIER();
}

static void* g_main;
static void* g_fibers[2];
static int g_at;
static unsigned long g_steps;

NOINLINE void gives_way() {
  BARRIER();
  co_switch(&g_fibers[g_at], g_main);
  BARRIER();
}

NOINLINE void steps(int depth) {
  ++g_steps;
  gives_way();
  if (depth != 0) steps(depth - 1);
  gives_way();
  BARRIER();
}

NOINLINE void lives() {
  for (;;) {
    steps(3);
    BARRIER();
  }
}

NOINLINE void resumes(int fiber) {
  g_at = fiber;
  co_switch(&g_main, g_fibers[fiber]);
  BARRIER();
}

int main() {
  for (void*& fiber : g_fibers) fiber = new_stack(lives, 64 << 10);
  printf("ready\n");
  fflush(stdout);
  pollfd input = {0, POLLIN, 0};
  while (poll(&input, 1, 1) == 0)
    for (int i = 0; i < 100; ++i) resumes(i % 2);
  printf("right %d\n", g_steps != 0 ? 1 : 0);
  return 0;
}
