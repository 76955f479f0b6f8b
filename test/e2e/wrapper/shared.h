// An inline function and a template that two objects both contain: their code and their sleds' tables lie in COMDAT
// groups.
#pragma once
__attribute__((noinline)) inline int in_both(int x) { return x + 1; }
template <typename T>
__attribute__((noinline)) T larger(T a, T b) {
  return a > b ? a : b;
}
int second(int x);
