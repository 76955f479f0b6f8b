// Its first thread has ended; the others go on: "ready", then until its standard input ends.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) int work(int i) {
  volatile int s = i;
  for (int k = 0; k < 500; ++k) s += k;
  return s;
}

static volatile int g_over;

static void* reads(void* nothing) {
  char word;
  while (read(0, &word, 1) > 0) {
  }
  g_over = 1;
  return nothing;
}

static void* works(void* first) {
  pthread_join(*(pthread_t*)first, 0);
  puts("ready");
  fflush(stdout);
  long rounds = 0;
  for (; !g_over; ++rounds) {
    const int expected = work(1);
    if (work(1) != expected) abort();
    usleep(1000);
  }
  printf("right %ld\n", rounds);
  fflush(stdout);
  exit(0);
}

int main(void) {
  static pthread_t first;
  pthread_t thread;
  first = pthread_self();
  pthread_create(&thread, 0, reads, 0);
  pthread_create(&thread, 0, works, &first);
  pthread_exit(0);
}
