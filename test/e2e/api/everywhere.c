/* The API from C: before main, in a signal handler, after fork; what a program sees with libkarst and without.
 * usage: everywhere DIRECTORY */
#include <errno.h>
#include <karst/karst.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* g_directory;
static volatile int g_sink;
static int g_early;

__attribute__((noinline)) void leaf(int i) { g_sink = i; }
__attribute__((noinline)) void work(void) {
  for (int i = 0; i < 1000; ++i) leaf(i);
}
__attribute__((noinline)) void ignored_work(void) { work(); }
__attribute__((noinline)) void child_work(void) { work(); }

static int save(const char* name, uint64_t since) {
  char path[4096];
  strcpy(path, g_directory);
  strcat(path, "/");
  strcat(path, name);
  return karst_snapshot_save(path, since);
}

static void handler(int number) {
  (void)number;
  const int saved = save("handler.karst", 0);
  karst_snapshot* s = karst_snapshot_all();
  karst_snapshot_free(s);
  g_sink = saved;
}

__attribute__((constructor)) static void before_main(void) { g_early = karst_time() != 0; }

int main(int count, char** arguments) {
  g_directory = count > 1 ? arguments[1] : ".";
  work();
  signal(SIGUSR1, handler);
  g_sink = -1;
  raise(SIGUSR1);
  printf("handler %d\n", g_sink);
  printf("early %d\n", g_early);
  printf("rate %d\n", karst_ticks_per_second() > 100000000);
  printf("name %d\n", karst_thread_set_name("the main thread, which has a name that is longer than the kernel's"));
  printf("history %d\n", karst_thread_set_history(256 << 10));
  printf("too much %d\n", karst_thread_set_history((uint64_t)1 << 40));
  karst_snapshot* before = karst_snapshot_all();
  printf("snapshot %d\n", before != NULL);
  errno = 77;
  printf("nowhere %d\n", karst_snapshot_save("/nonexistent/directory/x.karst", 0));
  printf("errno %d\n", errno);
  printf("null %d\n", karst_snapshot_write(NULL, "x"));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    char path[4096];
    child_work();
    strcpy(path, g_directory);
    strcat(path, "/parent.karst");
    const int parent = karst_snapshot_write(before, path);
    const int own = save("child.karst", 0);
    _exit(parent == own ? (parent == 0 ? 10 : 20) : 30);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\n", WEXITSTATUS(status));
  karst_snapshot_free(before);
  const int off = karst_disable();
  leaf(1);
  const int on = karst_enable();
  printf("off %d on %d\n", off, on);
  work();
  printf("saved %d\n", save("before-ignoring.karst", 0));
  printf("ignore %d\n", karst_thread_ignore());
  ignored_work();
  printf("saved %d\n", save("after-ignoring.karst", 0));
  return 0;
}
