/* Moves its break by sbrk() and brk(), rightly and wrongly, before it takes memory by malloc(). Prints what each gave.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL __attribute__((noinline, noclone))

static char room[1 << 16]; /* for stdout: no malloc() of libc's before ours */
static char* start;
static void* volatile kept;

static void told(const char* what, long result) {
  printf("%s: %ld, errno %d, at %ld\n", what, result, errno, (long)((char*)sbrk(0) - start));
  errno = 77;
}

CALL void grow(void) {
  for (long i = 1; i < 6; ++i) {
    char* old = sbrk(1000 * i);
    memset(old, 1, 1000 * i);
    told("sbrk", old - start);
  }
}
CALL void give_back(void) { told("sbrk", (char*)sbrk(-700) - start); }
CALL void set(void) {
  told("brk", brk(start + 100 * 4096));
  told("brk", brk(start + 100 * 4096));
  told("brk", brk(start + 9 * 4096));
}
CALL void fail(void) {
  told("brk", brk((void*)1));
  told("brk", brk((void*)(UINTPTR_MAX / 2)));
  told("sbrk", (long)sbrk(INTPTR_MAX / 4));
  told("sbrk", (long)sbrk(INTPTR_MIN));
  told("sbrk", (char*)sbrk(-(1L << 30)) - start);
  told("sbrk", (char*)sbrk(0) - start);
}
CALL void heap(void) {
  for (int i = 0; i < 100; ++i) kept = malloc(5000);
}

int main(void) {
  setvbuf(stdout, room, _IOFBF, sizeof room);
  start = sbrk(0);
  errno = 77;
  grow();
  give_back();
  set();
  fail();
  heap();
  return 0;
}
