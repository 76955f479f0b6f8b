// A zone and a log before a fork, and the same in the child.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "karst/karst.h"

static void say(int number) {
  KARST_ZONE("zone");
  karst_log("number %d", number);
}

int main() {
  say(1);
  const pid_t child = fork();
  if (child == 0) {
    say(2);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}
