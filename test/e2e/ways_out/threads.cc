// Threads that end inside of calls, and exceptions in threads.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "steps.h"

STEP(handler)
STEP(cleanup)
STEP(late)
STEP(never)

struct Guard {
  NOINLINE ~Guard() {
    cleanup();
    BARRIER();
  }
};

struct Local {
  NOINLINE ~Local() {
    late();
    BARRIER();
  }
};

sem_t ready;

NOINLINE void has_local() {
  static thread_local Local local;
  asm volatile("" ::"r"(&local) : "memory");
}

NOINLINE void ends(int how) {
  if (how == 0) pthread_exit(nullptr);
  sem_post(&ready);
  while (true) pause();
}

NOINLINE void between(int how) {
  ends(how);
  never();
}

NOINLINE void guarded(int how) {
  Guard guard;
  between(how);
  never();
}

NOINLINE void* ends_inside(void* how) {
  has_local();
  guarded(how == nullptr ? 0 : 1);
  never();
  return nullptr;
}

NOINLINE void throws() { throw 1; }

NOINLINE void* throws_and_catches(void*) {
  try {
    throws();
  } catch (int) {
    handler();
  }
  return nullptr;
}

int main() {
  sem_init(&ready, 0, 0);
  pthread_t thread;
  pthread_create(&thread, nullptr, ends_inside, nullptr);
  pthread_join(thread, nullptr);
  int cancelled = 0;
  pthread_create(&thread, nullptr, ends_inside, &cancelled);
  sem_wait(&ready);
  pthread_cancel(thread);
  pthread_join(thread, nullptr);
  pthread_create(&thread, nullptr, throws_and_catches, nullptr);
  pthread_join(thread, nullptr);
  handler();
  return 0;
}
