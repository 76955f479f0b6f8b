// A library with functions of its own, opened by host.c. With -DNAME another one of the same shape; with -DTHREAD its
// constructor starts a thread that calls traced code at once.
#ifdef THREAD
#include <pthread.h>
#endif

#ifndef NAME
#define NAME first
#endif

namespace NAME {

struct Shape {
  virtual ~Shape() = default;
  virtual int area(int n) const = 0;
};

template <int Sides>
struct Regular : Shape {
  __attribute__((noinline)) int area(int n) const override { return n * Sides; }
};

__attribute__((noinline)) int leaf(int n) {
  asm volatile("" : "+r"(n));
  return n + 1;
}

__attribute__((noinline)) int jumps(int n) { return leaf(n + 1); }  // a tail call

struct Constructed {
  int value;
  __attribute__((noinline)) Constructed() : value(leaf(40)) {}
  __attribute__((noinline)) ~Constructed() { value = leaf(0); }
};
Constructed g_constructed;

#ifdef THREAD
pthread_t g_threads[2];
void* work(void*) {
  for (int i = 0; i < 100; ++i) leaf(i);
  return nullptr;
}
__attribute__((constructor)) void begin() {
  for (pthread_t& t : g_threads) pthread_create(&t, nullptr, work, nullptr);
}
__attribute__((destructor)) void end() {
  for (const pthread_t t : g_threads) pthread_join(t, nullptr);
}
#endif

}  // namespace NAME

extern "C" int plugin_run(int n) {
  int sum = 0;
  const NAME::Regular<3> triangle;
  const NAME::Regular<4> square;
  for (int i = 0; i < n; ++i) {
    sum += NAME::jumps(i) - NAME::leaf(i + 1);
    const NAME::Shape& shape = i % 2 == 0 ? static_cast<const NAME::Shape&>(triangle) : square;
    sum += shape.area(1) == (i % 2 == 0 ? 3 : 4);
  }
  return sum;
}
