#pragma once
namespace library {
#ifdef __clang__
__attribute__((noinline))
#else
__attribute__((noipa))
#endif
inline int
inlined(int x) {
  asm volatile("" : "+r"(x));
  return x * 2;
}
}  // namespace library
