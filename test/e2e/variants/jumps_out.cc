// A signal handler after one single instruction of traced calls and their hooks, another one each time, by the
// processor's trap flag; then it jumps out, or makes calls of which one stays, or both.
//   jumps_out ROUNDS
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

sigjmp_buf g_out;
volatile long g_step, g_at;
volatile int g_kind;
volatile long g_thrown, g_left;

void short_one() { asm volatile(""); }
void short_two() { asm volatile(""); }
void throws() { throw 1; }
void calls_in_handler() {
  short_one();
  try {
    throws();
  } catch (int) {
    g_thrown = g_thrown + 1;
  }
}

__attribute__((no_instrument_function)) void on_step(int) {
  const long step = g_step;
  g_step = step + 1;
  if (step != g_at) return;
  if (g_kind != 0) calls_in_handler();
  if (g_kind != 1) {
    g_left = g_left + 1;
    siglongjmp(g_out, 1);
  }
}

__attribute__((no_instrument_function)) void step_through() {
  asm volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
  short_one();
  short_two();
  asm volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "memory", "cc");
}

void one_round(long at) {
  if (sigsetjmp(g_out, 1) != 0) return;
  g_step = 0;
  g_at = at;
  step_through();
}

int main(int, char** argv) {
  struct sigaction action {};
  action.sa_handler = on_step;
  sigaction(SIGTRAP, &action, nullptr);
  const long rounds = atol(argv[1]);
  for (g_kind = 0; g_kind < 3; g_kind = g_kind + 1)
    for (long at = 0; at < rounds; ++at) one_round(at);
  printf("%ld %ld\n", g_thrown, g_left);
}
