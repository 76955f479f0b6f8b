// One program that every compiler, method, linker and kind of build must show the same tree of.
#include <pthread.h>
#include <stdio.h>

#include "library.h"

namespace {

STEADY int fibonacci(int n) {
  asm volatile("" : "+r"(n));
  if (n < 2) return n;
  const int one = fibonacci(n - 1);
  return one + fibonacci(n - 2);
}

STEADY long many_arguments(int a, int b, int c, int d, int e, int f, int g, double h, const char* i) {
  asm volatile("" ::: "memory");
  return a + b + c + d + e + f + g + static_cast<long>(h) + i[0];
}

STEADY void* work(void* argument) {
  const int n = *static_cast<int*>(argument);
  const int f = fibonacci(n);
  *static_cast<int*>(argument) = builds::twice(f);
  return nullptr;
}

STEADY double half(double x) {
  asm volatile("" : "+x"(x));
  return x / 2;
}

}  // namespace

int main() {
  const int f = fibonacci(4);
  const int back = builds::call_back(fibonacci, 2);
  const long many = many_arguments(1, 2, 3, 4, 5, 6, 7, 8.5, "i");
  const double h = half(builds::twice(f) + 0.5);
  int area = 0;
  {
    const builds::Square square(6);
    area = builds::measure(square);
  }
  int shared = 3;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, work, &shared) != 0) return 1;
  pthread_join(thread, nullptr);
  printf("%d %d %ld %g %d %d\n", f, back, many, h, area, shared);
}
