// Its code is moved into memory without a file, at the same addresses, as programs do for the sake of huge pages.
//   moved HOW: all of it, or part of it
#define _GNU_SOURCE
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) int leaf(int x) {
  volatile int s = x;
  for (int i = 0; i < 5; ++i) s += i * x;
  return s;
}
__attribute__((noinline)) int middle(int x) {
  volatile int s = 0;
  for (int i = 0; i < 10; ++i) s += leaf(x + i);
  return s;
}

static int move(int all) {
  uintptr_t begin = 0, end = 0;
  const uintptr_t me = (uintptr_t)&middle;
  FILE* maps = fopen("/proc/self/maps", "r");
  for (char line[512]; fgets(line, sizeof line, maps);) {
    uintptr_t from, to;
    if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= me && me < to) begin = from, end = to;
  }
  fclose(maps);
  if (!all) begin = me & ~4095UL;
  const size_t size = end - begin;
  void* copy = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, (void*)begin, size);
  return mprotect(copy, size, PROT_READ | PROT_EXEC) != 0 ||
         mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void*)begin) != (void*)begin;
}

int main(int count, char** arguments) {
  if (count < 2 || move(strcmp(arguments[1], "all") == 0) != 0) return 1;
  puts("ready");
  fflush(stdout);
  long rounds = 0;
  const int expected = middle(7);
  for (struct pollfd in = {0, POLLIN, 0}; poll(&in, 1, 1) == 0; ++rounds)
    for (int i = 0; i < 100; ++i)
      if (middle(7) != expected) return 3;
  printf("right %ld\n", rounds);
  return 0;
}
