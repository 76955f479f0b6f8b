/* A process that is attached to: threads that there are already, and threads that these make later. Each says how much
 * CPU time it had in either function. It works when it has read a line, and ends when it has read another. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

enum { kThreads = 3 };
static const unsigned long kRounds = 100000000;
static pthread_barrier_t g_go;

static unsigned long cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (unsigned long)now.tv_sec * 1000000000UL + (unsigned long)now.tv_nsec;
}

static void work(void) {
  const unsigned long begin = cpu_ns();
  library_first(kRounds);
  const unsigned long between = cpu_ns();
  library_second(kRounds);
  const unsigned long end = cpu_ns();
  char line[200];
  const int size = snprintf(line, sizeof line, "first %d %d %lu\nsecond %d %d %lu\n", getpid(), gettid(),
                            between - begin, getpid(), gettid(), end - between);
  if (write(1, line, (size_t)size) != size) _exit(1);
}

static void* late(void* unused) {
  work();
  return unused;
}

static void* early(void* unused) {
  pthread_barrier_wait(&g_go);
  pthread_t made;
  pthread_create(&made, 0, late, 0);
  work();
  pthread_join(made, 0);
  return unused;
}

int main(void) {
  pthread_t threads[kThreads];
  char byte = 0;
  pthread_barrier_init(&g_go, 0, kThreads + 1);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], 0, early, 0);
  if (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) != 1) return 1;
  pthread_barrier_wait(&g_go);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], 0);
  if (write(1, "done\n", 5) != 5 || read(0, &byte, 1) != 1) return 1;
  return 0;
}
