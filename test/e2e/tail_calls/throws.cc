// Exceptions, cancellation and pthread_exit() over calls that wait for what they called by a tail call.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#define NOINLINE __attribute__((noinline))
volatile int sink;
volatile int unknown = 1;

NOINLINE int throws(int n) {
  sink = n;
  if (unknown != 0) throw n;
  return sink;
}
NOINLINE int passes(int n) {
  sink = n;
  return throws(n + 1);
}
NOINLINE int passes_twice(int n) {
  sink = n;
  return passes(n + 1);
}
NOINLINE int catches(int n) {
  try {
    return passes_twice(n) + 1;
  } catch (int caught) {
    return caught;
  }
}
NOINLINE int by_tail_call(int n) {
  sink = n;
  return catches(n);
}
struct Counts {
  int& into;
  ~Counts() { ++into; }
};
NOINLINE int cleans_up(int n, int& into) {
  Counts counts{into};
  return passes_twice(n) + 1;
}
NOINLINE int by_tail_call_too(int n, int& into) {
  sink = n;
  return cleans_up(n, into);
}

NOINLINE void* leaves(void* with) {
  sink = 1;
  pthread_exit(with);
}
void* (*volatile leave)(void*) = leaves;
NOINLINE void* passes_on(void* with) {
  sink = 2;
  return leave(with);
}
NOINLINE int sleeps(int n) {
  sink = n;
  return pause();
}
NOINLINE int sleeps_below(int n) {
  sink = n;
  return sleeps(n + 1);
}
void* is_cancelled(void*) {
  int cleaned = 0;
  Counts counts{cleaned};
  sleeps_below(3);
  return nullptr;
}

int main() {
  int sum = 0;
  int cleaned = 0;
  for (int i = 0; i < 200; ++i) {
    sum += by_tail_call(i);
    try {
      by_tail_call_too(i, cleaned);
    } catch (int caught) {
      sum += caught;
    }
  }
  pthread_t thread;
  void* result = nullptr;
  pthread_create(&thread, nullptr, passes_on, &sum);
  pthread_join(thread, &result);
  const bool left = result == &sum;
  pthread_create(&thread, nullptr, is_cancelled, nullptr);
  usleep(20000);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  std::printf("%d %d %d %d\n", sum, cleaned, left, result == PTHREAD_CANCELED);
}
