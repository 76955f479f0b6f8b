/* Two children made by fork, and then another program in the same process. */
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void child_work(int i) { usleep(1000 * (useconds_t)i); }

__attribute__((noinline)) static pid_t start(int i) {
  const pid_t child = fork();
  if (child == 0) {
    child_work(i);
    _exit(0);
  }
  return child;
}

int main(int argc, char** argv) {
  for (int i = 1; i < 3; ++i) start(i);
  while (wait(NULL) > 0) {
  }
  if (argc > 1) execl(argv[0], argv[0], (char*)NULL);
  return 0;
}
