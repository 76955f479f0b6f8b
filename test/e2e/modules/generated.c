/* A compiler at run time, as small as it can be: makes functions that call __cyg_profile_func_enter and _exit.
 *   generated N [map]        N calls of one that calls another; with `map`, their names are written for perf
 *   generated N map replace  then N calls of other code that took the first one's place
 *   generated N map fork     then N calls in a child, which makes a function of its own too */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef long (*function)(long);

static unsigned char* memory;
static FILE* map;

static void put(unsigned char** at, const char* bytes, size_t size) {
  memcpy(*at, bytes, size);
  *at += size;
}

static void put_word(unsigned char** at, const void* word) { put(at, (const char*)&word, sizeof word); }

static void put_hook(unsigned char** at, const void* self, const char* hook) {
  put(at, "\x48\xbf", 2); /* mov $self, %rdi */
  put_word(at, self);
  put(at, "\x48\x8b\x74\x24\x08", 5); /* mov 8(%rsp), %rsi */
  put(at, "\x48\xb8", 2);             /* mov $hook, %rax */
  put_word(at, dlsym(RTLD_DEFAULT, hook));
  put(at, "\xff\xd0", 2); /* call *%rax */
}

/* long name(long x) { return callee(x) + 1; } */
static function make(unsigned char* place, const char* name, function callee) {
  unsigned char* at = place;
  put(&at, "\x53\x48\x89\xfb", 4); /* push %rbx; mov %rdi, %rbx */
  put_hook(&at, place, "__cyg_profile_func_enter");
  if (callee != NULL) {
    put(&at, "\x48\x89\xdf\x48\xb8", 5); /* mov %rbx, %rdi; mov $callee, %rax */
    put_word(&at, (const void*)callee);
    put(&at, "\xff\xd0\x48\x89\xc3", 5); /* call *%rax; mov %rax, %rbx */
  }
  put(&at, "\x48\xff\xc3", 3); /* inc %rbx */
  put_hook(&at, place, "__cyg_profile_func_exit");
  put(&at, "\x48\x89\xd8\x5b\xc3", 5); /* mov %rbx, %rax; pop %rbx; ret */
  if (map != NULL) {
    fprintf(map, "%lx %lx %s\n", (unsigned long)place, (unsigned long)(at - place), name);
    fflush(map);
  }
  function made;
  memcpy(&made, &place, sizeof made);
  return made;
}

static void open_map(void) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  map = fopen(path, "w");
}

__attribute__((noinline, noclone)) static long work(function outer, long n) {
  long sum = 0;
  for (long i = 0; i < n; ++i) sum += outer(i) - i;
  return sum;
}

int main(int argc, char** argv) {
  const long n = atol(argv[1]);
  const char* also = argc > 3 ? argv[3] : "";
  memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  if (argc > 2) open_map();
  const function leaf = make(memory, "*leaf main.js:3", NULL);
  const function outer = make(memory + 1024, "_ZN3jit5outerEl", leaf);
  long sum = work(outer, n);
  if (strcmp(also, "replace") == 0) {
    make(memory, "*other main.js:7", NULL);
    sum += work(outer, n);
  }
  if (strcmp(also, "fork") == 0) {
    fflush(stdout);
    if (fork() == 0) {
      open_map();
      work(make(memory + 2048, "*child main.js:9", outer), n);
      _exit(0);
    }
    wait(NULL);
  }
  printf("%ld\n", sum);
  return 0;
}
