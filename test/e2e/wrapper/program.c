#include <stdio.h>
__attribute__((noinline)) int twice(int x) { return 2 * x; }
int main(int argc, char** argv) {
  (void)argv;
  printf("%d\n", twice(20 + argc));
  return argc + 6;
}
