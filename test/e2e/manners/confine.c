// Puts itself under a restriction and execs the rest of its command line:
//   confine container|service PROGRAM ARG...
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "filters.h"

int main(int argc, char** argv) {
  const size_t count = sizeof kContainer / sizeof kContainer[0];
  int failed = argc < 3;
  if (!failed && strcmp(argv[1], "container") == 0)
    failed = allow_only(kContainer, count, SECCOMP_RET_ERRNO | EPERM, 0);
  // As a service manager does it: what is not in the list ends the process.
  if (!failed && strcmp(argv[1], "service") == 0) failed = allow_only(kContainer, count, SECCOMP_RET_KILL_PROCESS, 0);
  if (failed) {
    perror("confine");
    return 77;
  }
  execv(argv[2], argv + 2);
  perror(argv[2]);
  return 1;
}
