// What the functions that start programs do with what is wrong, and what is on the edge. With OLD the posix_spawn of
// glibc before 2.15, which gives a text without #! to a shell.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef OLD
__asm__(".symver posix_spawn,posix_spawn@GLIBC_2.2.5");
__asm__(".symver posix_spawnp,posix_spawnp@GLIBC_2.2.5");
#endif

extern char** environ;

static int ends(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// In a child: what the call returns with, as its status.
#define TRY(what, call)                    \
  do {                                     \
    fflush(stdout);                        \
    const pid_t child = fork();            \
    if (child == 0) {                      \
      call;                                \
      _exit(errno);                        \
    }                                      \
    printf("%s: %d\n", what, ends(child)); \
  } while (0)

static char* g_many[4097 + 200];

int main(void) {
  char* const arguments[] = {"text", NULL};
  char** const bad = (char**)8;
  char* bad_entry[] = {"A=1", (char*)8, NULL};
  const int file = open("text", O_CREAT | O_WRONLY | O_TRUNC, 0755);
  if (write(file, "exit 7\n", 7) != 7) return 2;
  close(file);
  pid_t child = 0;
  int error = posix_spawn(&child, "./text", NULL, NULL, arguments, environ);
  printf("posix_spawn %d %d\n", error, error != 0 ? 0 : ends(child));
  setenv("PATH", ".:/bin", 1);
  error = posix_spawnp(&child, "text", NULL, NULL, arguments, environ);
  printf("posix_spawnp %d %d\n", error, error != 0 ? 0 : ends(child));
  error = posix_spawn(&child, "/nonexistent", NULL, NULL, arguments, environ);
  printf("no such file %d\n", error);
  error = posix_spawn(&child, "/bin/true", NULL, NULL, arguments, NULL);
  printf("spawned without environment %d %d\n", error, error != 0 ? 0 : ends(child));
  TRY("execvp", execvp("text", arguments));
  TRY("execlp", execlp("text", "text", (char*)NULL));
  TRY("execvpe", execvpe("text", arguments, environ));
  TRY("execv", execv("./text", arguments));
  TRY("no environment", execve("/bin/sh", (char*[]){"sh", "-c", "exit 5", NULL}, NULL));
  TRY("environ is null", environ = NULL; execl("/bin/sh", "sh", "-c", "exit 3", (char*)NULL));
  TRY("cleared", clearenv(); execl("/bin/sh", "sh", "-c", "exit 4", (char*)NULL));
  TRY("no path", unsetenv("PATH"); execlp("true", "true", (char*)NULL));
  TRY("no arguments", execve("/bin/true", NULL, environ));
  TRY("bad arguments", execve("/bin/true", bad, environ));
  TRY("bad path", execve((char*)bad, arguments, environ));
  TRY("bad file", execvp("/nonexistent/\xff", arguments));
  TRY("bad environment", execve("/bin/true", arguments, bad));
  TRY("bad entry", execve("/bin/true", arguments, bad_entry));
  TRY("a directory", execv("/", arguments));
  TRY("no descriptor", fexecve(-1, arguments, environ));
  for (int i = 0; i < 4196; ++i) g_many[i] = "MANY=1";
  TRY("many variables", execve("/bin/true", arguments, g_many));
  // Just enough room without ours: 128 KiB a string is the most, and 2 MiB in all under the usual limit of the stack.
  static char large[32][131000];
  char* list[33] = {"true"};
  long room = sysconf(_SC_ARG_MAX) - 8192;
  int i = 1;
  for (; i < 32 && room > 0; ++i) {
    const long size = room < (long)sizeof large[i] ? room : (long)sizeof large[i];
    memset(large[i], 'x', (size_t)size - 1);
    list[i] = large[i];
    room -= size + 8;
  }
  list[i] = NULL;
  TRY("large", execve("/bin/true", list, (char*[]){NULL}));
  return 0;
}
