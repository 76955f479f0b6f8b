// Calls by the table of addresses (-fno-plt) where an entry's jump would be.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) int next(int x) { return rand() % 2 + abs(x); }
__attribute__((noinline)) int last(int x) {
  const int y = rand() % 2;
  return x > y ? x : y;
}

int main() {
  int sum = 0;
  for (int i = 0; i < 100; ++i) sum += next(i) + last(i);
  printf("%d\n", sum);
  return 0;
}
