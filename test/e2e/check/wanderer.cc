// A thread computes a little, and goes to another CPU, again and again.
#include <sched.h>

namespace {

volatile unsigned long sink = 0;

}  // namespace

__attribute__((noinline)) void compute() {
  for (unsigned long i = 0; i < 100000; ++i) sink = sink + i;
}

__attribute__((noinline)) bool move_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

int main() {
  for (int i = 0; i < 300; ++i) {
    if (!move_to(i % 2)) return 77;
    compute();
  }
  return 0;
}
