// Opens and closes libraries (plugin.cc) in the ways that programs do. Prints what plugin_run returned, added up.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int g_stop;
static long g_steps[16];

__attribute__((noinline)) int step(int n) {
  __asm__ volatile("" : "+r"(n));
  return n + 1;
}

static void fail(const char* what) {
  printf("%s: %s\n", what, dlerror());
  exit(1);
}

__attribute__((noinline)) int run(void* library, int n) {
  int (*plugin_run)(int) = (int (*)(int))dlsym(library, "plugin_run");
  if (plugin_run == NULL) fail("dlsym");
  return plugin_run(n);
}

// Where libraries lay, each place once.
static unsigned long g_places[64];

__attribute__((noinline)) static void note_place(void* library) {
  const unsigned long at = ((struct link_map*)library)->l_addr;
  for (size_t i = 0; i < sizeof g_places / sizeof g_places[0]; ++i) {
    if (g_places[i] == at) return;
    if (g_places[i] != 0) continue;
    g_places[i] = at;
    fprintf(stderr, "place %lu\n", at);
    return;
  }
}

__attribute__((noinline)) int visit(const char* path, int flags, int n) {
  void* library = dlopen(path, RTLD_NOW | flags);
  if (library == NULL) fail("dlopen");
  if (getenv("HOST_PLACES") != NULL) note_place(library);
  const int result = run(library, n);
  dlclose(library);
  return result;
}

static void* work(void* steps) {
  while (!__atomic_load_n(&g_stop, __ATOMIC_ACQUIRE)) *(long*)steps += step(0);
  return NULL;
}

struct Visits {
  const char* path;
  int count;
  int result;
};

static void* visits(void* p) {
  struct Visits* v = p;
  for (int i = 0; i < v->count; ++i) v->result += visit(v->path, RTLD_LOCAL, 1);
  return NULL;
}

int main(int argc, char** argv) {
  const char* mode = argv[1];
  const char* path = argv[2];
  const int count = argc > 3 ? atoi(argv[3]) : 1;
  long result = 0;
  if (strcmp(mode, "once") == 0) {
    result = visit(path, 0, count);
  } else if (strcmp(mode, "deepbind") == 0) {
    result = visit(path, RTLD_DEEPBIND, count);
  } else if (strcmp(mode, "loop") == 0) {
    for (int i = 0; i < count; ++i) result += visit(path, 0, 1);
  } else if (strcmp(mode, "alternate") == 0) {  // PATH COUNT OTHER: both have the same size, so the same place
    for (int i = 0; i < count; ++i) result += visit(path, 0, 1) + visit(argv[4], 0, 1);
  } else if (strcmp(mode, "elsewhere") == 0) {
    for (int i = 0; i < count; ++i) {
      void* library = dlopen(path, RTLD_NOW);
      if (library == NULL) fail("dlopen");
      result += run(library, 1);
      struct link_map* map = library;
      char* const at = (char*)map->l_addr;
      dlclose(library);
      if (mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at) return 2;
    }
  } else if (strcmp(mode, "namespace") == 0) {
    for (int i = 0; i < count; ++i) {
      void* library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
      if (library == NULL) fail("dlmopen");
      result += run(library, 1);
      dlclose(library);
    }
  } else if (strcmp(mode, "threads") == 0) {  // PATH COUNT OTHER: some threads work, two open and close
    pthread_t workers[2];
    for (int t = 0; t < 2; ++t) pthread_create(&workers[t], NULL, work, &g_steps[8 * t]);
    pthread_t visitor;
    struct Visits mine = {path, count, 0};
    struct Visits others = {argv[4], count, 0};
    pthread_create(&visitor, NULL, visits, &others);
    visits(&mine);
    pthread_join(visitor, NULL);
    __atomic_store_n(&g_stop, 1, __ATOMIC_RELEASE);
    for (int t = 0; t < 2; ++t) pthread_join(workers[t], NULL);
    result = mine.result + others.result;
  } else if (strcmp(mode, "forks") == 0) {  // parent and child each open what the other has not
    const pid_t child = fork();
    result = child == 0 ? visit(argv[4], 0, count) : visit(path, 0, count);
    int status = 0;
    if (child == 0) return result == count ? 0 : 1;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    result += visit(argv[4], 0, count);
  } else if (strcmp(mode, "stays") == 0) {  // still open at exit, with traced code running in another thread
    static pthread_t worker;
    pthread_create(&worker, NULL, work, &g_steps[0]);
    void* library = dlopen(path, RTLD_NOW);
    if (library == NULL) fail("dlopen");
    result = run(library, count);
  } else {
    return 2;
  }
  printf("%ld\n", result);
  return 0;
}
