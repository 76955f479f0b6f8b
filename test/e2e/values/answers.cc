// Calls whose time follows their arguments, in threads: step() by n and mode, serve() by its id; count_down() recurses.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#define CALLED __attribute__((noinline, noclone))

CALLED long spin(long n) {
  volatile long sum = 0;
  for (long i = 0; i < n; ++i) sum = sum + i;
  return sum;
}

CALLED int step(int n, const char* mode) { return static_cast<int>(spin(n) % 3) + (mode[0] == 'e' ? 0 : 1); }

CALLED int count_down(int n) {
  spin(20);
  return n == 0 ? 0 : count_down(n - 1) + 1;
}

CALLED int serve(int id, int n) {
  int sum = id % 2;
  for (int i = 0; i < 5; ++i) sum += step(i == 3 ? n : 1000, i % 2 != 0 ? "odd" : "even");
  return sum;
}

void work(int rounds, unsigned seed) {
  std::mt19937 random(seed);
  for (int i = 0; i < rounds; ++i) {
    serve(i, seed == 0 && i == rounds / 2 ? 500000 : 1000);
    count_down(static_cast<int>(random() % 5));
  }
}

int main(int, char** argv) {
  const int rounds = std::atoi(argv[1]);
  std::thread other(work, rounds, 1);
  work(rounds, 0);
  other.join();
}
