#include <cstdlib>

#include "mixed.h"

namespace mixed {

int pong(int n) {
  if (n <= 0) return 2;
  const int below = ping(n - 1);
  return below * 3 + std::abs(n - below);
}

void pass(int n) {
  struct Guard {
    ~Guard() { value = 0; }
    volatile int value = 1;
  } guard;
  throw_from(n);
  guard.value = n;
}

int catch_one(int n) {
  try {
    throw_from(n + 1);
  } catch (int thrown) {
    return thrown * 2;
  }
  return 1;
}

int count_up(int n) {
  volatile int sum = 0;
  for (int i = 0; i < n; ++i) sum = sum + i;
  return sum;
}

}  // namespace mixed
