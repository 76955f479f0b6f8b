// A hundred calls; with an argument it waits then, to be looked at.
#include <stdio.h>
#include <unistd.h>

volatile int v;
__attribute__((noinline)) void work(int n) {
  for (int i = 0; i < n; i++) v += i;
}
int main(int argc, char** argv) {
  for (int i = 0; i < 100; i++) work(i);
  if (argc > 1 && argv[1][0] == 'p') {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
  return 0;
}
