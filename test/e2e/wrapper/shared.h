// An inline function and a template that two objects both contain: their code and their sleds' tables lie in COMDAT
// groups, whatever sections inline assembly goes through.
#pragma once
__attribute__((noinline)) inline int in_both(int x) {
  asm volatile(".pushsection .rodata.mark,\"a\",@progbits; .byte 1; .popsection");
  return x + 1;
}
template <typename T>
__attribute__((noinline)) T larger(T a, T b) {
  return a > b ? a : b;
}
int second(int x);
