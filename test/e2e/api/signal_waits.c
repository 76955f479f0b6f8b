/* A program that has SIGUSR2 blocked: takes it by signalfd, then by sigwait, then lets it come. */
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

static volatile int g_sink;
__attribute__((noinline)) void step(int i) { g_sink = i; }

int main(void) {
  struct sigaction was;
  sigset_t set;
  struct signalfd_siginfo got;
  int number = 0;
  sigaction(SIGUSR2, NULL, &was);
  printf("%d %s\n", getpid(), was.sa_handler == SIG_IGN ? "ignored" : was.sa_handler == SIG_DFL ? "default" : "other");
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, NULL);
  step(1);
  const int fd = signalfd(-1, &set, SFD_CLOEXEC);
  printf("reads\n");
  fflush(stdout);
  if (read(fd, &got, sizeof got) != (ssize_t)sizeof got) return 1;
  printf("signalfd %d\n", got.ssi_signo == SIGUSR2);
  fflush(stdout);
  if (sigwait(&set, &number) != 0) return 2;
  printf("sigwait %d\n", number == SIGUSR2);
  fflush(stdout);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  while (getchar() != EOF) step(2);
  return 0;
}
