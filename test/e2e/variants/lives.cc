// lives many N      N threads after each other, each with its calls
// lives killed N    makes N calls on each of 2 threads, says so, and is killed
// lives forks N     N children by fork, each with its calls
// lives handler N   a timer's handler makes calls while the program does
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

volatile long g_ticks;

void leaf() { asm volatile(""); }
void in_handler() { asm volatile(""); }
void branch(int n) {
  for (int i = 0; i < n; ++i) leaf();
}
void on_tick(int) {
  for (int i = 0; i < 100; ++i) in_handler();
  g_ticks = g_ticks + 1;
}

int main(int, char** argv) {
  const int n = atoi(argv[2]);
  if (strcmp(argv[1], "many") == 0) {
    for (int i = 0; i < n; ++i) std::thread([] { branch(7); }).join();
  } else if (strcmp(argv[1], "killed") == 0) {
    std::thread([n] { branch(n); }).join();
    branch(n);
    kill(getpid(), SIGKILL);
  } else if (strcmp(argv[1], "forks") == 0) {
    branch(5);
    for (int i = 0; i < n; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        branch(3);
        _exit(0);
      }
      waitpid(child, nullptr, 0);
    }
    branch(2);
  } else {
    struct sigaction action {};
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval every = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &every, nullptr);
    long rounds = 0;
    while (g_ticks < n) {
      branch(1000);
      ++rounds;
    }
    signal(SIGALRM, SIG_IGN);
    printf("%ld %ld\n", rounds, static_cast<long>(g_ticks));
  }
}
