// Calls in_loop with each number that it reads.
#include <cstdio>

volatile int g_sink;
__attribute__((noinline)) void in_loop(int i) { g_sink = i; }

int main() {
  std::puts("ready");
  std::fflush(stdout);
  for (int i = 0; std::scanf("%d", &i) == 1;) in_loop(i);
}
