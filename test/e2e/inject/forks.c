// Forks a child for each line that it reads, and prints its number. Children call a function until they are killed.
// With an argument it forks for each SIGUSR1, in the handler, and the child stays in there.
#include <signal.h>
#include <stdio.h>
#include <sys/select.h>
#include <unistd.h>

__attribute__((noinline)) int work(int n) {
  volatile int sum = 0;
  for (int i = 0; i < n; ++i) sum = sum + i * n % 7;
  return sum;
}

static void make_child(void) {
  const pid_t child = fork();
  if (child == 0)
    for (;;) {
      usleep(1000);
      work(1000);
    }
  printf("%d\n", child);
}

static void handle(int number) {
  (void)number;
  make_child();
}

int main(int argc, char** argv) {
  (void)argv;
  char line[100];
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGUSR1, handle);
  puts("ready");
  if (argc > 1)
    for (;;) select(0, NULL, NULL, NULL, NULL);
  while (fgets(line, sizeof line, stdin) != NULL) make_child();
  return 0;
}
