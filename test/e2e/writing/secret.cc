// A program that names a file as its source which its user may not read.
#include <unistd.h>

#line 1 SECRET
__attribute__((noinline)) void named() { asm volatile(""); }
int main() {
  named();
  for (;;) usleep(10'000);
}
