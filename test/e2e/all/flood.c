// Calls a known number of functions as fast as it can, in threads and in forked children, with a signal handler that
// makes some, too: flood.c ROUNDS THREADS CHILDREN SIGNALS_A_SECOND. Says a sum, and how often the handler ran.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long g_rounds;
static volatile long g_zero;
static volatile sig_atomic_t g_handled;

__attribute__((noinline)) long leaf(long n) { return n + g_zero; }
__attribute__((noinline)) long middle(long n) { return leaf(n) + leaf(n + 1) + 1; }
__attribute__((noinline)) void handled(void) { ++g_handled; }

static void on_alarm(int signal) {
  (void)signal;
  handled();
}

static void* work(void* unused) {
  (void)unused;
  long sum = 0;
  for (long i = 0; i < g_rounds; ++i) sum += middle(i);
  return (void*)sum;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  g_rounds = atol(argv[1]);
  const int threads = atoi(argv[2]);
  const int children = atoi(argv[3]);
  const long signals = atol(argv[4]);
  if (signals != 0) {
    struct sigaction action = {0};
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval every = {{0, 1000000 / signals}, {0, 1000000 / signals}};
    setitimer(ITIMER_REAL, &every, NULL);
  }
  pthread_t made[64];
  long sum = 0;
  for (int i = 0; i < threads && i < 64; ++i) pthread_create(&made[i], NULL, work, NULL);
  for (int i = 0; i < threads && i < 64; ++i) {
    void* result = NULL;
    pthread_join(made[i], &result);
    sum += (long)result;
  }
  for (int i = 0; i < children; ++i)
    if (fork() == 0) _exit((long)work(NULL) != 0 ? 7 : 8);
  for (int i = 0; i < children; ++i) {
    int status = 0;
    while (wait(&status) < 0) continue;
    sum += WEXITSTATUS(status);
  }
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%ld %d\n", sum, (int)g_handled);
  return 0;
}
