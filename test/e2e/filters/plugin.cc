namespace plugins {
#ifdef __clang__
__attribute__((noinline))
#else
__attribute__((noipa))
#endif
int help(int x) {
  asm volatile("" : "+r"(x));
  return x + 2;
}
}  // namespace plugins

int plugin(int x) { return plugins::help(x) + 1; }
