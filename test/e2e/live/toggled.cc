// Runs until it is told to stop (a byte, or the end, on standard input): THREADS threads that call, return, throw and
// jump all the time. Ends with 0 if every result was right.
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> g_stop{false};

[[gnu::noinline]] long leaf(long n) { return n * 3 + 1; }
[[gnu::noinline]] long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
[[gnu::noinline]] long tail(long n) { return n == 0 ? leaf(n) : leaf(n - 1); }

[[gnu::noinline]] void thrower(int depth) {
  if (depth == 0) throw std::runtime_error("out");
  thrower(depth - 1);
  asm volatile("");
}

[[gnu::noinline]] int catcher(int depth) {
  try {
    thrower(depth);
  } catch (const std::runtime_error&) {
    return depth;
  }
  return -1;
}

[[gnu::noinline]] void jumper(jmp_buf& place, int depth) {
  if (depth == 0) longjmp(place, 7);
  jumper(place, depth - 1);
  asm volatile("");
}

[[gnu::noinline]] int lander(int depth) {
  jmp_buf place;
  const int way = setjmp(place);
  if (way == 0) jumper(place, depth);
  return way;
}

[[gnu::noinline]] double floating(double a, float b, long double c) {
  return a * 2 + static_cast<double>(b) + static_cast<double>(c);
}

bool round(long i) {
  return leaf(i) == i * 3 + 1 && fib(10) == 55 && tail(i % 3) == leaf(i % 3 == 0 ? 0 : i % 3 - 1) && catcher(5) == 5 &&
         lander(4) == 7 && floating(1.5, 2.5F, 3.5L) == 9.0;
}

std::atomic<bool> g_wrong{false};

void work() {
  for (long i = 0; !g_stop; ++i)
    if (!round(i)) g_wrong = true;
}

void blocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  work();
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 8;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(i % 4 == 3 ? blocked : work);
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  while (read(0, &byte, 1) == 1 && byte != 'q') {
  }
  g_stop = true;
  for (std::thread& t : threads) t.join();
  std::puts(g_wrong ? "wrong" : "right");
  return g_wrong ? 1 : 0;
}
