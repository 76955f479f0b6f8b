// Calls a known number of functions in threads and in forked children, and says how many: counts.c ROUNDS THREADS
// CHILDREN
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long g_rounds;
static volatile long g_sum;

__attribute__((noinline)) long leaf(long n) { return n + g_sum; }
__attribute__((noinline)) long middle(long n) { return leaf(n) + leaf(n + 1) + 1; }

__attribute__((noinline)) void* work(void* unused) {
  long sum = 0;
  for (long i = 0; i < g_rounds; ++i) {
    sum += middle(i);
    // A trace needs time to be taken away where more comes than a processor can pack.
    if (i % 4096 == 4095) usleep(3000);
  }
  g_sum = sum;
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  g_rounds = atol(argv[1]);
  const int threads = atoi(argv[2]);
  const int children = atoi(argv[3]);
  pthread_t made[64];
  for (int i = 0; i < threads && i < 64; ++i) pthread_create(&made[i], NULL, work, NULL);
  for (int i = 0; i < threads && i < 64; ++i) pthread_join(made[i], NULL);
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      work(NULL);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  printf("%ld\n", g_rounds);
  return 0;
}
