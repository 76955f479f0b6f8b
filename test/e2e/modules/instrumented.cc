// For -finstrument-functions: recursion, a template, a library header's inline functions, an exception.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

__attribute__((noinline)) int leaf(int n) {
  asm volatile("" : "+r"(n));
  return n + 1;
}

template <typename T>
__attribute__((noinline)) T twice(T n) {
  return leaf(static_cast<int>(n)) + n;
}

__attribute__((noinline)) int fib(int n) {
  if (n < 2) return leaf(n) - 1;
  int a = fib(n - 1);
  int b = fib(n - 2);
  asm volatile("" : "+r"(a), "+r"(b));  // no compiler makes a loop of it
  return a + b;
}

__attribute__((noinline)) int throws(int n) {
  if (n % 2 == 0) throw std::runtime_error("even");
  return n;
}

__attribute__((noinline)) int catches(int n) {
  try {
    return throws(n);
  } catch (const std::runtime_error&) {
    return leaf(n);
  }
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 10;
  long sum = 0;
  const auto work = [&sum, n] {
    for (int i = 0; i < n; ++i) sum += static_cast<long>(twice(1.0)) + twice(2);
  };
  std::thread(work).join();
  work();
  for (int i = 0; i < n; ++i) sum += catches(i);
  std::printf("%ld %d\n", sum, fib(12));
}
