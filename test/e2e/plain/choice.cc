// Functions that a plain build has, with counts that are known.
#include <cstdio>

namespace {
volatile int sink;
}

__attribute__((noipa)) int twice(int n) { return 2 * n; }

__attribute__((noipa)) int step(int n) {
  int sum = 0;
  for (int i = 0; i < 2; ++i) sum += twice(n + i);
  sink = sum;
  return sum;
}

int main() {
  int sum = 0;
  for (int i = 0; i < 1000; ++i) sum += step(i);
  std::printf("%d\n", sum);
}
