/* Does what its standard input asks for, a letter at a time, and says when that is done:
     w N   writes a pipe N times by itself     p N   the same by the plugin, which is loaded when it is first needed
     t     takes pointers to functions as calls of a table    f   forks a child that does the same, and waits for it
     c     waits for conditions of both versions              d    takes all descriptors
   The end of its input is its end. Prints "right" then if all was as it had to be. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int g_ends[2];
static int g_wrong;
/* Pointers in data, which are slots of another kind. */
static ssize_t (*g_write)(int, const void*, size_t) = write;
static ssize_t (*const g_const_write)(int, const void*, size_t) = write;

/* Of before glibc 2.3.2, when a condition was one pointer: what stands before the new function would write behind it.
 */
extern int old_timedwait(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
__asm__(".symver old_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");

static void drain(long bytes) {
  char buffer[4096];
  while (bytes > 0) {
    const ssize_t got = read(g_ends[0], buffer, bytes < 4096 ? (size_t)bytes : 4096);
    if (got <= 0) break;
    bytes -= got;
  }
  g_wrong |= bytes != 0;
}

__attribute__((noinline)) void write_it(int count) {
  for (int i = 0; i < count; ++i) g_wrong |= write(g_ends[1], "123", 3) != 3;
  drain(3L * count);
}

__attribute__((noinline)) void write_by_plugin(const char* path, int count) {
  static int (*s_plugin)(int, int);
  if (s_plugin == NULL) {
    void* library = dlopen(path, RTLD_NOW);
    if (library == NULL) exit(2);
    s_plugin = (int (*)(int, int))dlsym(library, "pipe_bytes");
  }
  g_wrong |= s_plugin(g_ends[1], count);
  drain(5L * count);
}

__attribute__((noinline)) void write_by_table(void) {
  g_wrong |= g_write(g_ends[1], "12", 2) != 2;
  g_wrong |= g_const_write(g_ends[1], "12", 2) != 2;
  drain(4);
}

__attribute__((noinline)) void fork_it(void) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    write_it(2);
    void* memory = malloc(100);
    free(memory);
    _exit(g_wrong);
  }
  g_wrong |= child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

__attribute__((noinline)) void take_descriptors(void) {
  while (dup(0) >= 0) {
  }
}

__attribute__((noinline)) void wait_for_conditions(void) {
  static pthread_mutex_t s_mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t s_new = PTHREAD_COND_INITIALIZER;
  static struct {
    void* condition;
    char after[64];
  } s_old;
  const struct timespec past = {1, 0};
  memset(s_old.after, 0x5a, sizeof s_old.after);
  pthread_mutex_lock(&s_mutex);
  g_wrong |= old_timedwait((pthread_cond_t*)&s_old.condition, &s_mutex, &past) != ETIMEDOUT;
  g_wrong |= pthread_cond_timedwait(&s_new, &s_mutex, &past) != ETIMEDOUT;
  pthread_mutex_unlock(&s_mutex);
  for (size_t i = 0; i < sizeof s_old.after; ++i) g_wrong |= s_old.after[i] != 0x5a;
}

int main(int count, char** arguments) {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (count != 2 || pipe(g_ends) != 0) return 2;
  puts("ready");
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (line[0] == 'w') write_it(atoi(line + 1));
    if (line[0] == 'p') write_by_plugin(arguments[1], atoi(line + 1));
    if (line[0] == 't') write_by_table();
    if (line[0] == 'f') fork_it();
    if (line[0] == 'c') wait_for_conditions();
    if (line[0] == 'd') take_descriptors();
    puts("done");
    fflush(stdout);
  }
  puts(g_wrong ? "wrong" : "right");
  return g_wrong;
}
