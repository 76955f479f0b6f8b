// One program whose tree of calls is the same however it is built: nothing here can be inlined, cloned or merged, and
// all that a compiler could add is told to stay away (matrix.py: the flags).
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

#include "library.h"

namespace {

NOINLINE int fibonacci(int n) {
  asm volatile("" : "+r"(n));
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

NOINLINE bool is_odd(int n);
NOINLINE bool is_even(int n) {
  asm volatile("" : "+r"(n));
  return n == 0 || is_odd(n - 1);
}
NOINLINE bool is_odd(int n) {
  asm volatile("" : "+r"(n));
  return n != 0 && is_even(n - 1);
}

template <typename T, int kTimes>
NOINLINE T repeat(T value) {
  T result = 0;
  for (int i = 0; i < kTimes; ++i) {
    asm volatile("" ::: "memory");
    result += value;
  }
  return result;
}

NOINLINE int prepare(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

struct Global {
  NOINLINE Global() : value(prepare(5)) { asm volatile("" ::: "memory"); }
  NOINLINE ~Global() {
    asm volatile("" ::: "memory");
    prepare(6);
    asm volatile("" ::: "memory");
  }
  int value;
};
Global g_global;

NOINLINE void at_exit() {
  prepare(7);
  asm volatile("" ::: "memory");
}

NOINLINE int called_back(int x) { return fibonacci(x); }

// The cold part of the function returns by itself.
NOINLINE __attribute__((cold)) int rare(int x) {
  asm volatile("" : "+r"(x));
  return x + 1;
}
NOINLINE int split(int x) {
  asm volatile("" : "+r"(x));
  if (__builtin_expect(x > 5, 0)) return rare(x) + rare(x + 1);
  return x;
}
// The only return lies in the cold part.
NOINLINE int pump(int n) {
  for (;;) {
    asm volatile("" : "+r"(n));
    if (__builtin_expect(n <= 0, 0)) return rare(n) + 1;
    n = prepare(n) - 1;
  }
}
NOINLINE int around_split(int x) {
  const int r = split(x);
  return prepare(r) + pump(r > 7 ? 2 : 1);
}

NOINLINE long many_arguments(int a, int b, int c, int d, int e, int f, int g, double h, const char* i) {
  asm volatile("" ::: "memory");
  return a + b + c + d + e + f + g + static_cast<long>(h) + i[0];
}

NOINLINE void* thread_work(void* argument) {
  const auto n = static_cast<int>(reinterpret_cast<long>(argument));
  const matrix::Square square(n);
  std::printf("%d\n", matrix::measure(square) + fibonacci(n));
  return nullptr;
}

NOINLINE void run_thread(long n) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, thread_work, reinterpret_cast<void*>(n)) != 0) std::abort();
  pthread_join(thread, nullptr);
}

}  // namespace

int main() {
  std::atexit(at_exit);
  std::printf("%d %d\n", fibonacci(4), is_even(5));
  std::printf("%ld %g %d\n", repeat<long, 3>(14), repeat<double, 2>(0.5), repeat<int, 1>(g_global.value));
  {
    const matrix::Square square(6);
    std::printf("%d %d\n", matrix::measure(square), matrix::count(square, 2));
  }
  std::printf("%d\n", matrix::call_back(called_back, 3));
  for (int x = 5; x < 8; ++x) std::printf("%d\n", around_split(x));
  std::printf("%ld\n", many_arguments(1, 2, 3, 4, 5, 6, 7, 8.5, "i"));
  run_thread(2);
  run_thread(3);
}
