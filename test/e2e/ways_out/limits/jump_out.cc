// A handler that jumps out of a traced call after each single instruction in turn, those of the hooks among them.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "../steps.h"

STEP(leaf)
STEP(came_back)

sigjmp_buf place;
volatile int steps;
volatile int last;
volatile bool over;

UNTRACED void on_step(int) {
  if (++steps == last) siglongjmp(place, 1);
}

NOINLINE void round_of_steps() {
  steps = 0;
  if (sigsetjmp(place, 1) == 0) {
    asm volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
    leaf();
    asm volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "memory", "cc");
    over = true;
  } else {
    came_back();
  }
  BARRIER();
}

int main() {
  leaf();
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = on_step;
  sigaction(SIGTRAP, &action, nullptr);
  int rounds = 0;
  for (; !over; ++rounds) {
    last = rounds + 1;
    round_of_steps();
  }
  std::printf("%d\n", rounds);
  return 0;
}
