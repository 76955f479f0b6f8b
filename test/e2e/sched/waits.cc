// A traced program whose functions compute, sleep and wait for each other. waits ROUNDS [WORD]
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

int g_there[2];
int g_back[2];
volatile unsigned long g_work;

void compute(int milliseconds) {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  const long until = t.tv_sec * 1000 + t.tv_nsec / 1000000 + milliseconds;
  do {
    for (int i = 0; i < 1000; ++i) g_work = g_work + 1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  } while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < until);
}
void doze() {
  const timespec t = {0, 2000000};
  nanosleep(&t, nullptr);
}
void ask() {
  char word = 0;
  if (write(g_there[1], &word, 1) != 1 || read(g_back[0], &word, 1) != 1) abort();
}
void answer() {
  char word = 0;
  if (read(g_there[0], &word, 1) != 1 || write(g_back[1], &word, 1) != 1) abort();
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 10;
  if (pipe(g_there) != 0 || pipe(g_back) != 0) return 1;
  std::thread second([rounds] {
    for (int i = 0; i < rounds; ++i) answer();
  });
  for (int i = 0; i < rounds; ++i) ask();
  second.join();
  for (int i = 0; i < 5; ++i) doze();
  compute(20);
  if (argc > 2) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
}
