// tracer PID: traces it, says "traced", and lets it go when its standard input ends.
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>

int main(int argc, char** argv) {
  if (argc < 2 || ptrace(PTRACE_SEIZE, atoi(argv[1]), 0, 0) != 0) return 1;
  puts("traced");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
