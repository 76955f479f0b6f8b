// A program with an allocator of its own, whose free() may not be called before main(): GNU Common Lisp's is so.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static char memory[1 << 22];
static size_t used;
static int started;
static int early;

void* malloc(size_t size) {
  void* const taken = memory + used;
  used += (size + 15) & ~(size_t)15;
  return taken;
}
void* calloc(size_t count, size_t size) { return malloc(count * size); }
void* realloc(void* old, size_t size) {
  void* const taken = malloc(size);
  if (old != NULL) memmove(taken, old, size);
  return taken;
}
void free(void* taken) {
  if (taken != NULL && !started) ++early;
}

int main(void) {
  started = 1;
  printf("%d early\n", early);
  return early;
}
