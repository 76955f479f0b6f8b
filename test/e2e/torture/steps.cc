// Interrupts traced code after every single instruction, hooks included, by the processor's trap flag: no luck needed
// to hit the one between taking a slot and filling it.
//   steps every CALLS              the handler makes CALLS traced calls after every 37th instruction, another one each
//                                  time (after each, a hook would never get its slot)
//   steps N CALLS [WORK [BEFORE]]  the handler makes CALLS traced calls, each of which works for WORK steps, after the
//                                  Nth instruction alone. BEFORE: so many calls are made before that
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile long g_steps, g_in_handler, g_leaves;
long g_at = -1;
int g_calls;
volatile int g_work, g_worked;

void handler_leaf() {
  g_in_handler = g_in_handler + 1;
  for (int i = 0; i < g_work; ++i) g_worked = g_worked + 1;
}
void leaf() { g_leaves = g_leaves + 1; }

__attribute__((no_instrument_function)) void on_step(int) {
  if (g_at == -1 ? g_steps % 37 == 0 : g_steps == g_at)
    for (int i = 0; i < g_calls; ++i) handler_leaf();
  g_steps = g_steps + 1;
}

__attribute__((no_instrument_function)) void step_through() {
  asm volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
  leaf();
  leaf();
  asm volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "memory", "cc");
}

int main(int argc, char** argv) {
  const bool every = strcmp(argv[1], "every") == 0;
  if (!every) g_at = atol(argv[1]);
  g_calls = atoi(argv[2]);
  if (argc > 3) g_work = atoi(argv[3]);
  for (int i = 0; argc > 4 && i < atoi(argv[4]); ++i) handler_leaf();
  struct sigaction action {};
  action.sa_handler = on_step;
  sigaction(SIGTRAP, &action, nullptr);
  // So often that stepping meets the end of a block, too.
  for (int i = 0; i < (every ? 700 : 1); ++i) step_through();
  printf("%ld %ld %ld\n", g_steps, g_in_handler, g_leaves);
}
