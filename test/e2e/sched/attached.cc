// A traced program to attach to. "ready", with a thread "early" that waits; after a line on stdin a new thread, "late",
// asks "early" ROUNDS times; then in_loop() is reached, and "done". attached ROUNDS
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

int g_there[2];
int g_back[2];
volatile int g_rounds;

void take(int pipe) {
  char word = 0;
  if (read(pipe, &word, 1) != 1) abort();
}
void give(int pipe) {
  char word = 0;
  if (write(pipe, &word, 1) != 1) abort();
}
void wait_for_the_first() { take(g_there[0]); }
void answer() {
  give(g_back[1]);
  take(g_there[0]);
}
void ask() {
  give(g_there[1]);
  take(g_back[0]);
}
void in_loop() { g_rounds = g_rounds + 1; }

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 10;
  if (pipe(g_there) != 0 || pipe(g_back) != 0) return 1;
  std::thread early([rounds] {
    pthread_setname_np(pthread_self(), "early");
    printf("ready %ld\n", syscall(SYS_gettid));
    fflush(stdout);
    wait_for_the_first();
    for (int i = 0; i < rounds; ++i) answer();
  });
  if (getchar() == EOF) _exit(1);
  std::thread late([rounds] {
    pthread_setname_np(pthread_self(), "late");
    for (int i = 0; i < rounds; ++i) ask();
    give(g_there[1]);
  });
  late.join();
  early.join();
  in_loop();
  puts("done");
}
