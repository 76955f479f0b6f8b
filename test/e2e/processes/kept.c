// Says what it was given, and calls work() 100 times. Its own status is 3.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char** environ;
volatile int sum;

__attribute__((noinline)) void work(int n) {
  for (int i = 0; i < n; ++i) sum += i;
}

static const char* of(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? value : "-";
}

int main(int argc, char** argv) {
  for (int i = 0; i < 100; ++i) work(i);
  int ours = 0;
  for (char** v = environ; *v != NULL; ++v)
    ours += strstr(*v, "libkarst") != NULL || strstr(*v, "KARST_OPTIONS") != NULL;
  printf("%d %s said %s ours %d preload %s\n", argc, argc > 1 ? argv[1] : "-", of("SAID"), ours > 0, of("LD_PRELOAD"));
  return 3;
}
