/* vfork: the child's calls appear in its parent's thread, as they run there, and end when the parent goes on. */
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "steps.h"

STEP(after)
STEP(never)

NOINLINE void child_exits(void) {
  _exit(0);
  never();
}

NOINLINE void child_execs(void) {
  execl("/bin/true", "true", (char*)0);
  never();
}

NOINLINE void vforks(int execs) {
  const pid_t child = vfork();
  if (child == 0) {
    if (execs)
      child_execs();
    else
      child_exits();
  }
  after();
  waitpid(child, NULL, 0);
}

int main(void) {
  vforks(0);
  vforks(1);
  after();
  return 0;
}
