/* Cleanup handlers in C without exceptions: libc jumps to them by itself. */
#include <pthread.h>
#include <stddef.h>

#include "../steps.h"

NOINLINE void handler(void* unused) {
  (void)unused;
  BARRIER();
}

NOINLINE void ends(void) { pthread_exit(NULL); }

NOINLINE void* thread_main(void* unused) {
  (void)unused;
  pthread_cleanup_push(handler, NULL);
  ends();
  pthread_cleanup_pop(0);
  return NULL;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, thread_main, NULL);
  pthread_join(thread, NULL);
  return 0;
}
