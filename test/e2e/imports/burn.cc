// Two threads that use CPU time in one function, by two callers: three quarters and a quarter of it.
#include <thread>
__attribute__((noinline)) void inner(volatile long* x, long n) {
  for (long i = 0; i < n; ++i) *x += i;
  asm volatile("");
}
__attribute__((noinline)) void heavy(volatile long* x) {
  inner(x, 3000000);
  asm volatile("");
}
__attribute__((noinline)) void light(volatile long* x) {
  inner(x, 1000000);
  asm volatile("");
}
void work() {
  volatile long x = 0;
  for (int i = 0; i < 10; ++i) {
    heavy(&x);
    light(&x);
  }
}
int main() {
  std::thread t(work);
  work();
  t.join();
}
