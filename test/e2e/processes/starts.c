// Starts a program in one of the ways there are: starts HOW FILE, twice, with the argument "said" and KARST_TEST=kept.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void becomes(const char* how, const char* file) {
  char* const arguments[] = {(char*)file, (char*)"said", NULL};
  if (strcmp(how, "execve") == 0) execve(file, arguments, environ);
  if (strcmp(how, "execv") == 0) execv(file, arguments);
  if (strcmp(how, "execvp") == 0) execvp(file, arguments);
  if (strcmp(how, "execvpe") == 0) execvpe(file, arguments, environ);
  // More than fit into registers.
  if (strcmp(how, "execl") == 0) execl(file, file, "said", "1", "2", "3", "4", "5", (char*)NULL);
  if (strcmp(how, "execle") == 0) execle(file, file, "said", "1", "2", "3", "4", "5", (char*)NULL, environ);
  if (strcmp(how, "execlp") == 0) execlp(file, file, "said", "1", "2", "3", "4", "5", (char*)NULL);
  if (strcmp(how, "fexecve") == 0) fexecve(open(file, O_RDONLY | O_CLOEXEC), arguments, environ);
  _exit(127);
}

static int start(const char* how, const char* file) {
  char* const arguments[] = {(char*)file, (char*)"said", NULL};
  pid_t child = -1;
  if (strcmp(how, "posix_spawn") == 0) {
    if (posix_spawn(&child, file, NULL, NULL, arguments, environ) != 0) return 1;
  } else if (strcmp(how, "posix_spawnp") == 0) {
    if (posix_spawnp(&child, file, NULL, NULL, arguments, environ) != 0) return 1;
  } else if (strcmp(how, "system") == 0) {
    char line[4096];
    snprintf(line, sizeof line, "'%s' said; exit $?", file);
    return system(line);
  } else if (strcmp(how, "vfork") == 0) {
    child = vfork();
    if (child == 0) {
      execv(file, arguments);
      _exit(127);
    }
  } else {
    child = fork();
    if (child == 0) becomes(how, file);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  setenv("KARST_TEST", "kept", 1);
  return start(argv[1], argv[2]) != 0 || start(argv[1], argv[2]) != 0;
}
