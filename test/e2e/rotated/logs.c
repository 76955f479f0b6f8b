/* Two busy threads, one that calls something four times a second, and children by fork, for some seconds. What was
   called how often comes to stdout: NAME COUNT for each process, and a line for a slow call. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_ulong leaves, requests, ticks, slow;
static atomic_int ends;

__attribute__((noinline)) void leaf(void) { leaves++; }
__attribute__((noinline)) void request(void) {
  requests++;
  for (int i = 0; i < 20; ++i) leaf();
}
__attribute__((noinline)) void tick(void) { ticks++; }
__attribute__((noinline)) void slow_request(int ms) {
  slow++;
  usleep(1000 * ms);
  leaf();
}

__attribute__((noinline)) void* serve(void* unused) {
  while (!ends) {
    for (int i = 0; i < 100; ++i) request();
    usleep(2000);
  }
  return unused;
}
__attribute__((noinline)) void* look(void* unused) {
  while (!ends) {
    tick();
    usleep(250000);
  }
  return unused;
}

int main(int count, char** words) {
  const int seconds = count > 1 ? atoi(words[1]) : 4;
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, i < 2 ? serve : look, NULL);
  for (int i = 0; i < seconds; ++i) {
    slow_request(900);
    const pid_t child = fork();
    if (child == 0) {
      leaves = requests = ticks = slow = 0;
      for (int j = 0; j < 1000; ++j) request();
      printf("%d %lu %lu %lu %lu\n", getpid(), leaves, requests, ticks, slow);
      fflush(stdout);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  ends = 1;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  printf("%d %lu %lu %lu %lu\n", getpid(), leaves, requests, ticks, slow);
  return 0;
}
