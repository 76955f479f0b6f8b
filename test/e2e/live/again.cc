// A program of the ways-out corpus, over and over until there is something on standard input, or its end.
// Compiled with -DCORPUS='"../ways_out/NAME"'; as again.c where that is C.
//   again THREADS
#define main corpus_main
#include CORPUS
#undef main

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define AGAIN_UNTRACED __attribute__((no_instrument_function))

AGAIN_UNTRACED static int is_over(void) {
  struct pollfd input = {0, POLLIN, 0};
  return poll(&input, 1, 0) != 0;
}

AGAIN_UNTRACED static void* again(void* wrong) {
  while (!is_over())
    if (corpus_main() != 0) *(volatile int*)wrong = 1;
  return NULL;
}

AGAIN_UNTRACED int main(int argc, char** argv) {
  enum { kMost = 8 };
  pthread_t threads[kMost];
  int wrong[kMost] = {0};
  const int count = argc == 2 ? atoi(argv[1]) : 1;
  if (count < 1 || count > kMost) return 2;
  puts("ready");
  fflush(stdout);
  for (int i = 1; i < count; ++i)
    if (pthread_create(&threads[i], NULL, again, &wrong[i]) != 0) return 2;
  again(&wrong[0]);
  for (int i = 1; i < count; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < count; ++i)
    if (wrong[i] != 0) return 1;
  return 0;
}
