// Two threads whose calls are known: main's and another one's, 5 calls of middle() each, 10 of Shape::leaf() each.
#include <thread>

struct Shape {
  __attribute__((noinline)) static int leaf(int x) {
    asm volatile("" : "+r"(x));
    return x * 3 + 1;
  }
};

__attribute__((noinline)) int middle(int x) {
  int sum = 0;
  for (int i = 0; i < x; ++i) sum += Shape::leaf(i);
  asm volatile("" : "+r"(sum));
  return sum;
}

void work() {
  for (int i = 0; i < 5; ++i) middle(i);
}

int main() {
  std::thread other(work);
  work();
  other.join();
}
