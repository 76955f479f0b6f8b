// Built by the compiler as it is. Calls within the library, out of it by pointers, and exceptions of its own.
#include "work.h"

#include <stdexcept>
#include <utility>

namespace inner {
__attribute__((noinline)) void exchange(int& a, int& b) { std::swap(a, b); }
__attribute__((noinline)) int half(int n) {
  if (n < 0) throw std::invalid_argument("negative");
  return n / 2;
}
}  // namespace inner

extern "C" {
int work_tiny(int x) { return x + 1; }

int work_loop(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += work_tiny(i);
  return sum;
}

int work_each(int n, void (*visit)(int)) {
  for (int i = 0; i < n; ++i) visit(i);
  return n;
}

void work_sort(int* values, int count, WorkCompare compare) {
  for (int i = 0; i < count; ++i)
    for (int k = i; k > 0 && compare(&values[k - 1], &values[k]) > 0; --k) inner::exchange(values[k - 1], values[k]);
}

int work_fails(int n) {
  try {
    return inner::half(n) + inner::half(n - 4);
  } catch (const std::invalid_argument&) {
    return -1;
  }
}

int work_nested(int n, int (*again)(int)) { return n == 0 ? 0 : again(n - 1) + 1; }
}
