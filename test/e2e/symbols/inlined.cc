// A traced function with inlined ones in it, which are inlined into each other.
#include <cstdio>

__attribute__((noinline)) int leaf(int x) {
  asm volatile("");
  return x + 1;
}
inline __attribute__((always_inline)) int deeper(volatile int* x) { return *x * 3; }
inline __attribute__((always_inline)) int helper(volatile int* x) { return deeper(x) + leaf(*x); }

__attribute__((noinline)) int work(volatile int* x) { return helper(x) + helper(x); }

int main() {
  volatile int x = 2;
  int sum = work(&x);
  sum += work(&x);
  std::printf("%d\n", sum);
}
