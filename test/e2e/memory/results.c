/* What the functions of memory return and leave in errno, for good and for bad arguments. Prints no addresses. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void told(const char* what, size_t size, const void* address) {
  printf("%s %zx: %s, errno %d, aligned %d\n", what, size,
         address == NULL         ? "null"
         : address == MAP_FAILED ? "failed"
                                 : "some",
         errno, address == NULL || address == MAP_FAILED ? 0 : (int)((uintptr_t)address % 16 == 0));
  errno = 77;
}

static const size_t kSizes[] = {0, 1, 24, 4095, 4096, 1 << 20, (size_t)1 << 46, SIZE_MAX / 2, SIZE_MAX - 100, SIZE_MAX};
#define SIZES (sizeof kSizes / sizeof kSizes[0])

static jmp_buf jump;
static void leave(int signal) {
  (void)signal;
  siglongjmp(jump, 1);
}

int main(void) {
  errno = 77;
  for (size_t i = 0; i < SIZES; ++i) {
    const size_t size = kSizes[i];
    void* p = malloc(size);
    told("malloc", size, p);
    if (p != NULL) told("usable", size, malloc_usable_size(p) >= size ? p : NULL);
    free(p);
    told("free", size, NULL);
    p = calloc(size, 3);
    told("calloc", size, p);
    if (p != NULL && size != 0 && ((char*)p)[size * 3 - 1] != 0) puts("not zero");
    free(p);
    p = malloc(10);
    memcpy(p, "123456789", 10);
    void* moved = realloc(p, size);
    told("realloc", size, moved);
    if (moved == NULL && size != 0) printf("stays %s\n", (char*)p);
    if (moved != NULL && size >= 10) printf("moved %s\n", (char*)moved);
    free(moved == NULL && size != 0 ? p : moved);
    p = reallocarray(NULL, size, 5);
    told("reallocarray", size, p);
    free(p);
    static const size_t kAlignments[] = {0, 3, 8, 64, 4096, (size_t)1 << 40};
    for (size_t a = 0; a < sizeof kAlignments / sizeof kAlignments[0]; ++a) {
      const size_t alignment = kAlignments[a];
      if (size > 1 << 20 && size < SIZE_MAX / 2) continue;
      p = aligned_alloc(alignment, size);
      told("aligned_alloc", alignment, p);
      free(p);
      p = NULL;
      const int failed = posix_memalign(&p, alignment, size);
      printf("returned %d\n", failed);
      told("posix_memalign", alignment, p);
      if (failed == 0) free(p);
      if (alignment != 0 && (alignment & (alignment - 1)) == 0) {
        p = memalign(alignment, size);
        told("memalign", alignment, p);
        free(p);
      }
    }
    p = valloc(size);
    told("valloc", size, p);
    free(p);
    p = pvalloc(size);
    told("pvalloc", size, p);
    free(p);
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    told("mmap", size, p);
    if (p != MAP_FAILED) {
      p = mremap(p, size, size + 8192, MREMAP_MAYMOVE);
      told("mremap", size, p);
      printf("munmap %d\n", munmap(p, size + 8192));
    }
    told("munmap", size, NULL);
  }
  free(NULL);
  printf("munmap of nothing %d\n", munmap((void*)1, 5));
  told("munmap", 0, NULL);
  told("mmap of a bad file", 0, mmap(NULL, 4096, PROT_READ, MAP_SHARED, 12345, 0));
  /* To a place of its own. */
  char* there = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* here = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  printf("fixed %d\n", mremap(here, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, there) == there);
  /* A handler that takes memory, and one that jumps. */
  struct sigaction action = {.sa_handler = leave};
  sigaction(SIGALRM, &action, NULL);
  int jumps = 0;
  for (int i = 0; i < 50; ++i) {
    if (sigsetjmp(jump, 1) != 0) {
      ++jumps;
      continue;
    }
    ualarm(200, 0);
    for (;;) pause();
  }
  printf("jumps %d\n", jumps);
  /* A child that goes on. */
  const pid_t child = fork();
  if (child == 0) {
    char* p = malloc(1000);
    memset(p, 1, 1000);
    free(p);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\n", WEXITSTATUS(status));
  return 0;
}
