// Fibers of Boost: of Boost.Context alone, in several threads, and of Boost.Fiber. Nothing says what they are; the
// program logs it: each call of step() notes whose it is, and how deep.
//
// usage: boost context|fiber
#include <boost/context/fiber.hpp>
#include <boost/fiber/all.hpp>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "karst/karst.h"

#define NOINLINE __attribute__((noinline))
#define BARRIER() asm volatile("" ::: "memory")

namespace context = boost::context;

namespace {

KARST_NOTRACE void log(int fiber, int depth) {
  char text[64];
  std::snprintf(text, sizeof text, "%d %d", fiber, depth);
  karst_text(text);
}

template <typename Yield>
NOINLINE void step(int fiber, int depth, const Yield& yields) {
  log(fiber, depth);
  yields();
  if (depth < 3) step(fiber, depth + 1, yields);
  yields();
  log(fiber, depth);
  BARRIER();
}

context::fiber started(int i) {
  return context::fiber([i](context::fiber&& caller) {
    step(i, 0, [&] { caller = std::move(caller).resume(); });
    return std::move(caller);
  });
}

NOINLINE void use(std::vector<context::fiber>& fibers) {
  for (context::fiber& f : fibers)
    if (f) f = std::move(f).resume();
  BARRIER();
}

void of_context() {
  std::vector<context::fiber> fibers;
  for (int i = 0; i < 8; ++i) fibers.push_back(started(i));
  // Each thread takes all of them one step further.
  for (int turn = 0; turn < 9; ++turn) std::thread([&] { use(fibers); }).join();
}

void of_fiber() {
  std::vector<boost::fibers::fiber> fibers;
  for (int i = 0; i < 8; ++i) fibers.emplace_back([i] { step(i, 0, [] { boost::this_fiber::yield(); }); });
  for (boost::fibers::fiber& f : fibers) f.join();
}

}  // namespace

int main(int argc, char** argv) {
  std::strcmp(argc > 1 ? argv[1] : "", "fiber") == 0 ? of_fiber() : of_context();
  std::puts("done");
}
