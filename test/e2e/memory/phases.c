/* Memory in phases, each in a function of its own. With a number: so many allocations between the two. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static void* kept[10];

__attribute__((noinline)) void first(void) {
  for (int i = 0; i < 10; ++i) kept[i] = malloc(100);
}
__attribute__((noinline)) void release(void) {
  for (int i = 0; i < 10; ++i) free(kept[i]);
}
__attribute__((noinline)) void second(void) {
  void* later[10];
  for (int i = 0; i < 10; ++i) kept[i] = malloc(300);
  for (int i = 0; i < 10; ++i) free(malloc(50));
  for (int i = 0; i < 10; ++i) later[i] = malloc(70);
  for (int i = 0; i < 10; ++i) free(later[i]);
}
__attribute__((noinline)) void between(long count) {
  void* last = malloc(33); /* one lives at each moment */
  for (long i = 1; i < count; ++i) {
    void* next = malloc(33);
    free(last);
    last = next;
  }
  free(last);
}
__attribute__((noinline)) void mapper(void) {
  char* ten = mmap(NULL, 10 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(ten + 4096, 2 * 4096); /* in the middle of it */
  munmap(ten + 9 * 4096, 100);  /* a part of a page is all of it */
}

int main(int count, char** arguments) {
  first();
  release();
  second();
  mapper();
  if (count > 1) between(atol(arguments[1]));
  return 0;
}
