// Signals at a high rate into traced code, with a traced handler. Prints how often each function ran.
//   signals SOURCE HANDLED [STACK] [CALLS]     SOURCE: itimer, timer, tgkill; STACK: normal, alternate
// Ends after HANDLED handler calls. CALLS: calls that the handler makes itself (default 1).
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>
#include <thread>

volatile long g_handled, g_in_handler, g_leaves, g_branches, g_roots;
long g_wanted;
int g_handler_calls = 1;

void handler_leaf() { g_in_handler = g_in_handler + 1; }
void handler(int) {
  for (int i = 0; i < g_handler_calls; ++i) handler_leaf();
  g_handled = g_handled + 1;
}

// Nothing but calls: most signals hit a hook.
void leaf() { g_leaves = g_leaves + 1; }
void branch() {
  g_branches = g_branches + 1;
  leaf();
  leaf();
}
void root() {
  g_roots = g_roots + 1;
  branch();
  branch();
}

volatile bool g_done;
void shoot(pthread_t target) {
  while (!g_done) {
    const long before = g_handled;
    pthread_kill(target, SIGUSR1);
    while (g_handled == before && !g_done) {
    }
    for (volatile int i = 0; i < 20 + before % 512; i = i + 1) {
    }
  }
}

int main(int argc, char** argv) {
  const char* source = argv[1];
  g_wanted = atol(argv[2]);
  const bool alternate = argc > 3 && strcmp(argv[3], "alternate") == 0;
  if (argc > 4) g_handler_calls = atoi(argv[4]);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  if (alternate) {
    static char stack[64 << 10];
    stack_t area{};
    area.ss_sp = stack;
    area.ss_size = sizeof stack;
    sigaltstack(&area, nullptr);
    action.sa_flags |= SA_ONSTACK;
  }
  for (const int s : {SIGALRM, SIGUSR1, SIGUSR2}) sigaction(s, &action, nullptr);

  std::thread shooter;
  if (strcmp(source, "itimer") == 0) {
    const itimerval often{{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &often, nullptr);
  } else if (strcmp(source, "timer") == 0) {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR2;
    event._sigev_un._tid = static_cast<int>(syscall(SYS_gettid));
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    const itimerspec often{{0, 100000}, {0, 100000}};
    timer_settime(timer, 0, &often, nullptr);
  } else {
    shooter = std::thread(shoot, pthread_self());
  }
  while (g_handled < g_wanted) root();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  g_done = true;
  if (shooter.joinable()) shooter.join();
  printf("handler(int) %ld\nhandler_leaf() %ld\nleaf() %ld\nbranch() %ld\nroot() %ld\n", g_handled, g_in_handler,
         g_leaves, g_branches, g_roots);
}
