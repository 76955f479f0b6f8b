// host LIBRARY FILE TIMES [wait]: does the same as the library that it loads by dlmopen(), which it then has work. In
// turns; `wait`: each waits for a line.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALL extern "C" __attribute__((noinline, noclone))

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static void* volatile g_kept;

CALL void outer_take() {
  for (int i = 0; i < 10; ++i) {
    g_kept = malloc(300);
    free(g_kept);
  }
}
CALL long outer_read(const char* path) {
  char bytes[100];
  pthread_mutex_lock(&g_lock);
  const int fd = open(path, O_RDONLY);
  const long got = read(fd, bytes, sizeof bytes);
  close(fd);
  pthread_mutex_unlock(&g_lock);
  return got;
}
/// Threads of the first libc that work in the second one.
static long (*g_work)(const char*);
CALL void* on_a_thread(void* path) { return reinterpret_cast<void*>(g_work(static_cast<const char*>(path))); }

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  for (int i = 0; i < atoi(argv[3]); ++i) {
    void* const library = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      puts(dlerror());
      return 1;
    }
    if (argc == 5) {
      puts("loaded");
      fflush(stdout);
      if (getchar() == EOF) return 1;
    }
    g_work = reinterpret_cast<long (*)(const char*)>(dlsym(library, "work"));
    outer_take();
    const long theirs = g_work(argv[2]), ours = outer_read(argv[2]);
    pthread_t thread;
    void* result = nullptr;
    pthread_create(&thread, nullptr, on_a_thread, argv[2]);
    pthread_join(thread, &result);
    printf("%ld %ld %ld\n", theirs, ours, reinterpret_cast<long>(result));
    fflush(stdout);
    dlclose(library);
  }
  return 0;
}
