// One thread, which sleeps in read() until a line comes, or with a second word computes until then:
//   old        with words of the allocator and the dynamic linker on its stack, which nobody will return to
//   callback   in a callback of dl_iterate_phdr(), which has the dynamic linker's lock
//   handler    in a signal's handler, which came while it computed
//   call       in one that came in a system call, where nobody has a lock
// Says "right" and a number as it ends.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { kDeep = 16 << 10 };
static int g_got;
static int g_computes;

__attribute__((noinline)) static void compute(void) {
  for (volatile int i = 0; i < 3000000;) i = i + 1;
}

__attribute__((noinline)) static void wait_for_line(void) {
  char line[64];
  struct pollfd input = {.fd = 0, .events = POLLIN};
  if (write(1, "ready\n", 6) != 6) _exit(1);
  while (g_computes && poll(&input, 1, 0) == 0) compute();
  if (read(0, line, sizeof line) < 0) _exit(1);
  ++g_got;
}

/// Leaves what it was below its caller.
__attribute__((noinline)) static void use_stack(int depth) {
  volatile char room[512];
  room[0] = (char)depth;
  void* const memory = malloc(40000);
  free(memory);
  void* const library = dlopen("libm.so.6", RTLD_NOW);
  if (library != NULL) dlclose(library);
  if (depth != 0) use_stack(depth - 1);
  if (room[0] != (char)depth) abort();
}

__attribute__((noinline)) static void wait_above_it(void) {
  volatile char untouched[kDeep];
  untouched[kDeep - 1] = 1;
  wait_for_line();
  if (untouched[kDeep - 1] != 1) abort();
}

static int in_callback(struct dl_phdr_info* info, size_t size, void* data) {
  (void)info, (void)size, (void)data;
  wait_for_line();
  return 1;
}

static void in_handler(int signal) {
  (void)signal;
  wait_for_line();
}

int main(int count, char** words) {
  const char* const how = count > 1 ? words[1] : "";
  g_computes = count > 2;
  use_stack(20);
  if (strcmp(how, "old") == 0) wait_above_it();
  if (strcmp(how, "callback") == 0) dl_iterate_phdr(in_callback, NULL);
  if (strcmp(how, "call") == 0) {
    signal(SIGUSR1, in_handler);
    raise(SIGUSR1);
  }
  if (strcmp(how, "handler") == 0) {
    const struct itimerval soon = {.it_value = {.tv_usec = 1000}};
    signal(SIGALRM, in_handler);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (*(volatile int*)&g_got == 0) compute();
  }
  printf("right %d\n", g_got);
  return g_got == 1 ? 0 : 1;
}
