// A program with sleds that calls a library without: by its table of addresses, by pointers, by dlsym, through
// callbacks that return, throw and jump, in two threads. Says what it computed.
#include <dlfcn.h>
#include <setjmp.h>

#include <cstdio>
#include <stdexcept>
#include <thread>

#include "work.h"

namespace {

jmp_buf g_back;

void returns(int) {}
void throws(int i) {
  if (i == 2) throw std::runtime_error("third");
}
void jumps(int i) {
  if (i == 3) longjmp(g_back, 1);
}
int ascending(const void* a, const void* b) { return *static_cast<const int*>(a) - *static_cast<const int*>(b); }
int compare_jumps(const void* a, const void* b) {
  if (*static_cast<const int*>(b) == 7) longjmp(g_back, 2);
  return ascending(a, b);
}
int again(int n) {
  const int deeper = work_nested(n, again);
  return deeper;
}

int catches() {
  try {
    return work_each(5, throws);
  } catch (const std::runtime_error&) {
    return -2;
  }
}

int lands() {
  if (setjmp(g_back) != 0) return -3;
  return work_each(6, jumps);
}

int lands_from_sort() {
  int values[] = {5, 3, 7, 1};
  if (setjmp(g_back) != 0) return -4;
  work_sort(values, 4, compare_jumps);
  return 0;
}

int sorts() {
  int values[] = {4, 2, 3, 1};
  work_sort(values, 4, ascending);
  return values[0] * 1000 + values[1] * 100 + values[2] * 10 + values[3];
}

void say(const char* what, int value) { std::printf("%s %d\n", what, value); }

void all() {
  int (*volatile pointer)(int) = work_tiny;
  auto* found = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "work_tiny"));
  say("direct", work_tiny(1));
  say("pointer", pointer(2));
  say("dlsym", found(3));
  say("loop", work_loop(3));
  say("each", work_each(3, returns));
  say("sort", sorts());
  say("nested", work_nested(2, again));
  say("catches", catches());
  say("lands", lands());
  say("from sort", lands_from_sort());
  say("fails not", work_fails(10));
  say("fails", work_fails(2));
}

}  // namespace

int main() {
  all();
  std::thread(all).join();
}
