// Functions to leave out, by name, by path, by size, by mark.
#include <karst/karst.h>

#include <cstdio>

#include "header.h"

#ifdef __clang__
#define STEADY __attribute__((noinline))
#else
#define STEADY __attribute__((noipa))
#endif

int plugin(int x);

namespace app {

STEADY int tiny(int x) {
  asm volatile("" : "+r"(x));
  return x + 1;
}
STEADY int tiny_loop(int x) {
  do asm volatile("" : "+r"(x));
  while (--x > 0);
  return x;
}
STEADY int large(int x) {
  asm volatile("nop; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0" : "+r"(x));
  asm volatile("nop; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0; inc %0" : "+r"(x));
  return x;
}
KARST_NOTRACE STEADY int never(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
KARST_ALWAYS STEADY int always(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

}  // namespace app

int main() {
  int x = app::tiny(1);
  x += app::tiny_loop(2);
  x += app::large(3);
  x += app::never(4);
  x += app::always(5);
  x += library::inlined(6);
  x += plugin(7);
  std::printf("%d\n", x);
}
