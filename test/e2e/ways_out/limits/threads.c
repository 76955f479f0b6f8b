/* Threads that end inside of calls, and that no pthread_create made. usage: threads thrd|main */
#include <pthread.h>
#include <string.h>
#include <threads.h>

#include "../steps.h"

STEP(after)

NOINLINE void ends(int is_main) {
  if (is_main)
    pthread_exit(NULL);
  else
    thrd_exit(0);
}

NOINLINE int passes(void* is_main) {
  ends(is_main != NULL);
  BARRIER();
  return 0;
}

int main(int argc, char** argv) {
  (void)argc;
  if (strcmp(argv[1], "main") == 0) {
    passes(argv);
  } else {
    thrd_t thread;
    thrd_create(&thread, passes, NULL);
    thrd_join(thread, NULL);
  }
  after();
  return 0;
}
