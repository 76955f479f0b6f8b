// Threads wait in vfork() for children that sleep; another one looks how long it stands still.
//   vforks THREADS MILLISECONDS: so many threads, one child each that lives for so long
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long g_milliseconds;
static volatile int g_waiting;

__attribute__((noinline)) unsigned step(unsigned x) { return x * 1664525U + 1013904223U; }

static void* waits(void* nothing) {
  __atomic_add_fetch(&g_waiting, 1, __ATOMIC_SEQ_CST);
  const pid_t child = vfork();
  if (child == 0) {
    const struct timespec time = {g_milliseconds / 1000, g_milliseconds % 1000 * 1000000};
    syscall(SYS_nanosleep, &time, 0);
    _exit(0);
  }
  waitpid(child, 0, 0);
  return nothing;
}

int main(int count, char** arguments) {
  if (count < 3) return 1;
  const int threads = atoi(arguments[1]);
  g_milliseconds = atol(arguments[2]);
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    pthread_create(&thread, 0, waits, 0);
  }
  while (g_waiting != threads) usleep(1000);
  usleep(20000);
  puts("ready");
  fflush(stdout);
  unsigned x = 1;
  long rounds = 0;
  for (struct pollfd in = {0, POLLIN, 0}; poll(&in, 1, 0) == 0; ++rounds)
    for (int i = 0; i < 1000; ++i) x = step(x);
  printf("right %ld\n", rounds);
  return x == 0;
}
