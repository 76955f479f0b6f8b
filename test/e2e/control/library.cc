extern "C" __attribute__((noinline)) void in_library_leaf() { asm volatile(""); }
extern "C" void in_library() {
  in_library_leaf();
  asm volatile("");
}
