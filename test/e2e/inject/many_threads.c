// argv[1] threads that sleep and call a function, until its input ends.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int over;
static int right = 1;

__attribute__((noinline)) static int work(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += i * n % 7;
  return sum;
}

static void* go_on(void* argument) {
  const int expected = work(100);
  while (!over) {
    usleep(10000);
    if (work(100) != expected) right = 0;
  }
  return argument;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 1;
  pthread_t* threads = calloc((size_t)count, sizeof *threads);
  for (int i = 0; i < count; ++i) pthread_create(&threads[i], NULL, go_on, NULL);
  puts("ready");
  fflush(stdout);
  char line[100];
  while (fgets(line, sizeof line, stdin) != NULL) {
  }
  over = 1;
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  printf("%s %d\n", right ? "right" : "wrong", count);
  return right ? 0 : 1;
}
