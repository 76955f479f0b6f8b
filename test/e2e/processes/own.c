// Starts a program with an environment of its own: own HOW FILE [VARIABLE=VALUE...]. Ends with its status.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static char* g_environment[64] = {"SAID=yes"};

static void becomes(const char* how, char* file) {
  char* const arguments[] = {file, "one", NULL};
  if (strcmp(how, "execve") == 0) execve(file, arguments, g_environment);
  if (strcmp(how, "execvpe") == 0) execvpe(file, arguments, g_environment);
  if (strcmp(how, "execle") == 0) execle(file, file, "one", (char*)NULL, g_environment);
  if (strcmp(how, "fexecve") == 0) fexecve(open(file, O_RDONLY | O_CLOEXEC), arguments, g_environment);
  if (strcmp(how, "fexecve-path") == 0) fexecve(open(file, O_PATH | O_CLOEXEC), arguments, g_environment);
  if (strcmp(how, "execveat") == 0) execveat(AT_FDCWD, file, arguments, g_environment, 0);
  if (strcmp(how, "execveat-empty") == 0)
    execveat(open(file, O_PATH | O_CLOEXEC), "", arguments, g_environment, AT_EMPTY_PATH);
  environ = g_environment;
  if (strcmp(how, "execv") == 0) execv(file, arguments);
  if (strcmp(how, "execvp") == 0) execvp(file, arguments);
  if (strcmp(how, "execl") == 0) execl(file, file, "one", (char*)NULL);
  if (strcmp(how, "execlp") == 0) execlp(file, file, "one", (char*)NULL);
  if (strcmp(how, "system") == 0) _exit(WEXITSTATUS(system("\"$FILE\" one")));
  if (strcmp(how, "popen") == 0) _exit(WEXITSTATUS(pclose(popen("\"$FILE\" one", "w"))));
  _exit(127);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  char file[4096];
  snprintf(file, sizeof file, "FILE=%s", argv[2]);
  int count = 1;
  g_environment[count++] = file;
  for (int i = 3; i < argc && count < 63; ++i) g_environment[count++] = argv[i];
  char* const arguments[] = {argv[2], "one", NULL};
  pid_t child = -1;
  int failed = 0;
  if (strcmp(argv[1], "posix_spawn") == 0)
    failed = posix_spawn(&child, argv[2], NULL, NULL, arguments, g_environment);
  else if (strcmp(argv[1], "posix_spawnp") == 0)
    failed = posix_spawnp(&child, argv[2], NULL, NULL, arguments, g_environment);
  else if (strcmp(argv[1], "vfork") == 0) {
    child = vfork();
    if (child == 0) {
      execve(argv[2], arguments, g_environment);
      _exit(127);
    }
  } else {
    fflush(stdout);
    child = fork();
    if (child == 0) becomes(argv[1], argv[2]);
  }
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child) return 99;
  return WEXITSTATUS(status);
}
