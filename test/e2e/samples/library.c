#include "library.h"

#include <alloca.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define OWN __attribute__((noinline, noclone))

static volatile unsigned long g_sink;

static OWN void burn_first(unsigned long rounds) {
  unsigned long x = 1;
  for (unsigned long i = 0; i < rounds; ++i) x = x * 6364136223846793005UL + i;
  g_sink = x;
}
static OWN void burn_second(unsigned long rounds) {
  unsigned long x = 1;
  for (unsigned long i = 0; i < rounds; ++i) x = x * 6364136223846793005UL + (i ^ x >> 7);
  g_sink = x;
}
static OWN unsigned long between(unsigned long a, unsigned long b, unsigned long c, unsigned long rounds) {
  burn_first(rounds);
  return a * b + c; /* kept over the call: in registers that are the caller's */
}

void library_first(unsigned long rounds) { g_sink += between(rounds, g_sink, 3, rounds); }
void library_second(unsigned long rounds) {
  burn_second(rounds);
  g_sink += rounds;
}

static OWN void in_the_deep(char* room, unsigned size, unsigned long rounds) {
  memset(room, 1, size);
  burn_second(rounds);
  g_sink += (unsigned long)room[size - 1];
}
void library_deep(unsigned long rounds, unsigned size) {
  char* room = alloca(size);
  in_the_deep(room, size, rounds);
  g_sink += (unsigned long)room[0];
}

static unsigned long g_rounds;
static OWN void handle(int number) {
  burn_second(g_rounds);
  g_sink += (unsigned long)number;
}
void library_signal(unsigned long rounds) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  sigaction(SIGUSR1, &action, 0);
  g_rounds = rounds;
  raise(SIGUSR1);
  g_sink += rounds;
}

void library_back(void (*callback)(unsigned long), unsigned long rounds) {
  callback(rounds);
  g_sink += rounds;
}

static OWN int asleep(unsigned ms) {
  struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
  return nanosleep(&time, 0);
}
void library_sleeps(unsigned ms) { g_sink += (unsigned long)asleep(ms); }
void library_polls(unsigned ms) { g_sink += (unsigned long)poll(0, 0, (int)ms); }
