// A function in C, whose linker's name is its name.
#include <stdio.h>

__attribute__((noinline)) void hello(void) { puts("hello"); }

int main(void) {
  hello();
  return 0;
}
