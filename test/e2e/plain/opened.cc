// A library that is opened while the program runs: some work, exceptions, and a constructor that calls.
#include <stdexcept>

#ifndef FACTOR
#define FACTOR 3
#endif

extern "C" {
__attribute__((noinline, visibility("default"))) long opened_step(long a) {
  long sum = a;
  for (long i = 0; i < 20; ++i) sum = sum * FACTOR + (sum ^ i);
  return sum;
}

__attribute__((noinline, visibility("default"))) long opened_throw(long a) {
  if (opened_step(a) != 0) throw std::runtime_error("opened");
  return a;
}

__attribute__((visibility("default"))) long opened_work(long rounds) {
  long sum = 0;
  for (long i = 0; i < rounds; ++i) {
    sum += opened_step(i);
    try {
      sum += opened_throw(i);
    } catch (const std::runtime_error&) {
      ++sum;
    }
  }
  return sum;
}
}

namespace {
struct Begin {
  long sum = opened_step(7);
} g_begin;
}  // namespace
