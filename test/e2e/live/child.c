// A forked child that has made a call, and its parent: both wait for the end of standard input.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int step(int n) {
  __asm__ volatile("" : "+r"(n));
  return n + 1;
}

int main(void) {
  char byte = 0;
  int link[2];
  if (pipe(link) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    step(1);
    close(link[1]);
    if (read(link[0], &byte, 1) < 0) return 1;
    step(2);
    _exit(0);
  }
  printf("%d\n", (int)child);
  fflush(stdout);
  while (read(0, &byte, 1) == 1) step(3);
  close(link[1]);
  return waitpid(child, NULL, 0) != child;
}
