// With "wait" for an argument the program goes on until a line comes.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mixed.h"

#ifdef LIBRARY
#define MAIN run_all
extern "C" int run_all(int, char**);
#else
#define MAIN main
#endif

#ifdef __clang__
#define KEPT_OUT __attribute__((xray_never_instrument))
#else
#define KEPT_OUT __attribute__((no_instrument_function))
#endif

namespace mixed {

int ping(int n) { return n <= 0 ? 1 : pong(n - 1) + n; }

void throw_from(int n) {
  if (n % 2 == 0) throw n;
  std::fputs("", stdout);
}

KEPT_OUT __attribute__((noinline)) int kept_out(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += std::abs(i - n) * (i & 3);
  return sum;
}

int catches(int n) {
  try {
    pass(n);
  } catch (int thrown) {
    return thrown;
  }
  return 0;
}

}  // namespace mixed

int MAIN(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "wait") == 0) {
    std::printf("%d\n", getpid());
    std::fflush(stdout);
    int waited = 0;
    for (pollfd input{0, POLLIN, 0}; poll(&input, 1, 1) == 0; ++waited) mixed::ping(5);
    std::printf("%d\n", waited);
    return 0;
  }
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  long sum = 0;
  for (int i = 0; i < rounds; ++i) {
    sum += mixed::ping(i % 7);
    sum += mixed::catches(i);
    sum += mixed::catch_one(i);
    sum += mixed::count_up(i % 5) + mixed::kept_out(i % 5);
  }
  std::printf("%ld\n", sum);
  return 0;
}
