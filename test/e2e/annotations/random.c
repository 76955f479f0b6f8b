/* Threads push, pop and mark at random by NVTX's interface, through wrappers and without; a signal's handler does so,
 * too, and so do forked children. Each prints how often it began each range and made marks: "PID NAME COUNT". random
 * SEED STEPS */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, LEVELS = 12 };

static void (*mark)(const char*);
static int (*push)(const char*);
static int (*pop)(void);
static void** core[12] = {[2] = (void**)&mark, [9] = (void**)&push, [11] = (void**)&pop};
static int get_functions(uint32_t module, void**** table, unsigned* count) {
  *table = core;
  *count = 12;
  return module == 1;
}
static struct {
  size_t size;
  int (*get)(uint32_t, void****, unsigned*);
} callbacks = {sizeof callbacks, get_functions};
static const void* export_table(uint32_t id) { return id == 1 ? &callbacks : 0; }

static long levels[LEVELS], marks, handled;

static void handle(int signal) {
  if (signal == SIGALRM && push) {
    push("handler");
    mark("handled");
    pop();
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
  }
}

__attribute__((noinline)) static void my_push(const char* name) {
  push(name);
  __asm__ volatile("");
}
__attribute__((noinline)) static void my_pop(void) {
  pop();
  __asm__ volatile("");
}
__attribute__((noinline)) static void my_outer_push(const char* name) {
  my_push(name);
  __asm__ volatile("");
}

static unsigned next(unsigned* state) { return (*state = *state * 1103515245 + 12345) >> 16; }

__attribute__((noinline)) static void walk(unsigned seed, int steps) {
  int depth = 0;
  char name[32]; /* the same memory for all */
  for (int i = 0; i < steps; ++i) {
    switch (next(&seed) % 5) {
      case 0:
      case 1:
        if (depth == LEVELS) break;
        snprintf(name, sizeof name, "level %d", depth);
        __atomic_add_fetch(&levels[depth++], 1, __ATOMIC_RELAXED);
        switch (next(&seed) % 3) {
          case 0:
            push(name);
            break;
          case 1:
            my_push(name);
            break;
          default:
            my_outer_push(name);
        }
        break;
      case 2:
      case 3:
        if (depth == 0) break;
        --depth;
        if (next(&seed) % 2 != 0)
          pop();
        else
          my_pop();
        break;
      default:
        mark("a mark");
        __atomic_add_fetch(&marks, 1, __ATOMIC_RELAXED);
    }
  }
  while (depth-- > 0) pop();
}

static int steps;
static void* run(void* seed) {
  walk((unsigned)(uintptr_t)seed, steps);
  return 0;
}

static void report(void) {
  struct itimerval none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &none, 0);
  for (int i = 0; i < LEVELS; ++i) printf("%d level %d:%ld\n", getpid(), i, levels[i]);
  printf("%d a mark:%ld\n%d handler:%ld\n", getpid(), marks, getpid(), handled);
  fflush(stdout);
}

int main(int argc, char** argv) {
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* library = path ? dlopen(path, RTLD_LAZY) : 0;
  int (*init)(const void* (*)(uint32_t)) = 0;
  unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  struct itimerval often = {{0, 500}, {0, 500}};
  struct sigaction action;
  pthread_t threads[THREADS];
  if (library) *(void**)&init = dlsym(library, "InitializeInjectionNvtx2");
  if (!init || init(export_table) != 1) return 1;
  steps = argc > 2 ? atoi(argv[2]) : 1000;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &often, 0);
  for (uintptr_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], 0, run, (void*)(seed * 100 + i));
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], 0);
  fflush(stdout);
  if (fork() == 0) {
    memset(levels, 0, sizeof levels);
    marks = handled = 0;
    walk(seed * 100 + 50, steps);
    report();
    return 0;
  }
  wait(0);
  report();
  return 0;
}
