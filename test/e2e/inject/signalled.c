// One thread, whose waits end by signals, or go on in spite of them, until standard input ends:
//   suspend    sigsuspend() for SIGCHLD, which is blocked but there
//   ends       read() of nothing, which the handler of a timer ends
//   goes-on    read() of what another process writes now and then; a handler with SA_RESTART runs all the time
//   ignored    the same by poll(), and with signals that nobody handles
// Says "right" and how many waits there were as it ends. A wait whose end is missed lasts forever.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t g_came;
static sigset_t g_wait_with;
static int g_pipe[2];

static void sleep_us(long us) {
  const struct timespec time = {0, us * 1000};
  nanosleep(&time, NULL);
}

static void on_signal(int signal) {
  g_came = signal;
  const int before = errno;
  while (signal == SIGCHLD && waitpid(-1, NULL, WNOHANG) > 0) {
  }
  errno = before;
}

static void handle(int signal, int flags) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
  if (sigaction(signal, &action, NULL) != 0) abort();
}

/// Another process that sends a signal some thousand times a second, and a byte now and then.
static void begin_sender(int signal) {
  if (fork() != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 0; getppid() != 1; ++i) {
    sleep_us(100);
    kill(getppid(), signal);
    if (i % 50 == 0 && write(g_pipe[1], "", 1) != 1) _exit(1);
  }
  _exit(0);
}

__attribute__((noinline)) static int suspend_once(int round) {
  g_came = 0;
  if (fork() == 0) {
    sleep_us(round % 7 * 300);
    _exit(0);
  }
  while (g_came == 0) sigsuspend(&g_wait_with);
  return 1;
}

__attribute__((noinline)) static int end_once(void) {
  const struct itimerval once = {.it_value = {0, 40000}};
  char byte;
  setitimer(ITIMER_REAL, &once, NULL);
  return read(g_pipe[0], &byte, 1) == -1 && errno == EINTR;
}

__attribute__((noinline)) static int read_once(void) {
  char byte;
  return read(g_pipe[0], &byte, 1) == 1;
}

__attribute__((noinline)) static int poll_once(void) {
  struct pollfd output = {.fd = g_pipe[0], .events = POLLIN};
  return poll(&output, 1, -1) == 1 && read_once();
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "suspend";
  struct pollfd input = {.fd = 0, .events = POLLIN};
  if (pipe(g_pipe) != 0) return 1;
  if (strcmp(how, "suspend") == 0) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &g_wait_with);
    handle(SIGCHLD, 0);
  } else if (strcmp(how, "ends") == 0) {
    handle(SIGALRM, 0);
  } else if (strcmp(how, "goes-on") == 0) {
    handle(SIGUSR1, SA_RESTART);
    begin_sender(SIGUSR1);
  } else {
    begin_sender(SIGURG);
  }
  if (write(1, "ready\n", 6) != 6) return 1;
  int rounds = 0;
  while (poll(&input, 1, 0) <= 0) {
    const int right = *how == 's'   ? suspend_once(rounds)
                      : *how == 'e' ? end_once()
                      : *how == 'g' ? read_once()
                                    : poll_once();
    if (!right) {
      printf("wrong in round %d: %s\n", rounds, strerror(errno));
      return 1;
    }
    ++rounds;
  }
  printf("right %d\n", rounds);
  return 0;
}
