/* Is sent SIGUSR2: without a handler of its own, with one by signal(), with one by sigaction(), and without again. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t g_handled;
static volatile int g_sink;

static void handler(int number) { g_handled += number == SIGUSR2; }
static void handler_with_information(int number, siginfo_t* information, void* context) {
  g_handled += number == SIGUSR2 && information != NULL && context != NULL;
}

__attribute__((noinline)) void step(int i) { g_sink = i; }

static int wait_for_a_line(void) {
  int c = 0;
  while ((c = getchar()) != '\n' && c != EOF) continue;
  return c == EOF;
}

int main(void) {
  struct sigaction action = {0};
  struct sigaction before;
  step(0);
  printf("%d\n", getpid());
  fflush(stdout);
  for (int i = 1; !wait_for_a_line(); ++i) {
    step(i);
    printf("handled %d\n", (int)g_handled);
    if (i == 1 && signal(SIGUSR2, handler) != SIG_DFL) return 1;
    if (i == 2) {
      action.sa_sigaction = handler_with_information;
      action.sa_flags = SA_SIGINFO | SA_RESTART;
      if (sigaction(SIGUSR2, &action, &before) != 0 || before.sa_handler != handler) return 2;
    }
    if (i == 3 && signal(SIGUSR2, SIG_DFL) != (void (*)(int))handler_with_information) return 3;
    fflush(stdout);
  }
  return 0;
}
