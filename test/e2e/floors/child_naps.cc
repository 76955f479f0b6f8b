// A forked child naps N times for 5 ms each; its parent waits for it.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void nap() { usleep(5000); }

void child_life(int naps) {
  for (int i = 0; i < naps; ++i) nap();
}

int main(int, char** argv) {
  nap();
  const int child = fork();
  if (child == 0) {
    child_life(atoi(argv[1]));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}
