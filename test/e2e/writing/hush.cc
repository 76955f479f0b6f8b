// Says things that a trace of it repeats.
#include <cstdio>

__attribute__((noinline)) void planted_function() { asm volatile(""); }  // planted-source

int main(int argc, char**) {
  planted_function();
  std::printf("%d\n", argc);
}
