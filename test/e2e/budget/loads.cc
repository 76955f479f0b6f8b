// Loads that a budget has to cope with. Each mode prints how often its functions were called, by name; what is named
// with a capital letter is rare, or to be kept, and no budget may leave a call of it out.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "karst/karst.h"

#define KEEP_CALL __attribute__((noinline, noclone))

namespace {

volatile unsigned g_sum;

KEEP_CALL void hot(unsigned n) { g_sum = g_sum + n; }
KEEP_CALL void other(unsigned n) { g_sum = g_sum ^ n; }
KEEP_CALL void Rare(unsigned n) { g_sum = g_sum * n; }

KEEP_CALL void Serve(unsigned calls) {
  Rare(calls);
  for (unsigned i = 0; i < calls; ++i) hot(i);
}

void say(const char* name, unsigned long calls) { std::printf("%s %lu\n", name, calls); }

void hot_loop(unsigned calls) {
  for (unsigned i = 0; i < 200; ++i) Serve(calls / 200);
  say("Serve", 200);
  say("Rare", 200);
  say("hot", calls / 200 * 200);
}

KARST_ALWAYS KEEP_CALL void Always(unsigned n) { g_sum = g_sum + 2 * n; }

void always(unsigned calls) {
  for (unsigned i = 0; i < calls; ++i) {
    Always(i);
    other(i);
  }
  say("Always", calls);
  say("other", calls);
}

template <unsigned kNumber>
KEEP_CALL void tiny(unsigned n) {
  g_sum = g_sum + kNumber * n;
}
template <unsigned kFirst, unsigned kLeft>
void all_tiny(void (**table)(unsigned)) {
  if constexpr (kLeft == 1) {
    table[kFirst] = tiny<kFirst>;
  } else {
    all_tiny<kFirst, kLeft / 2>(table);
    all_tiny<kFirst + kLeft / 2, kLeft - kLeft / 2>(table);
  }
}
void (*g_tiny[256])(unsigned);

KEEP_CALL void Round(unsigned calls) {
  for (unsigned i = 0; i < calls; ++i) g_tiny[i % 256](i);
}

void tiny_functions(unsigned calls) {
  all_tiny<0, 256>(g_tiny);
  for (unsigned i = 0; i < 100; ++i) Round(calls / 100);
  say("Round", 100);
}

KEEP_CALL void Work(unsigned calls) {
  for (unsigned i = 0; i < calls; ++i) hot(i);
}

void threads(unsigned calls) {
  constexpr unsigned kThreads = 400;
  std::atomic<unsigned> next{0};
  std::vector<std::thread> makers;
  for (int m = 0; m < 4; ++m)
    makers.emplace_back([&] {
      while (next++ < kThreads) std::thread(Work, calls / kThreads).join();
    });
  for (std::thread& t : makers) t.join();
  say("Work", kThreads);
  say("hot", calls / kThreads * kThreads);
}

// Hundreds of threads at once, each with its share of the calls.
void crowd(unsigned calls) {
  constexpr unsigned kThreads = 300;
  std::atomic<unsigned> there{0};
  std::vector<std::thread> all;
  for (unsigned i = 0; i < kThreads; ++i)
    all.emplace_back([&] {
      for (++there; there < kThreads;) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      Work(calls / kThreads);
    });
  for (std::thread& t : all) t.join();
  say("Work", kThreads);
  say("hot", calls / kThreads * kThreads);
}

KEEP_CALL void Paced(unsigned n) { g_sum = g_sum - 3 * n; }

// One thread of eight has all the calls.
void one_hot(unsigned calls) {
  std::vector<std::thread> others;
  for (unsigned i = 0; i < 7; ++i)
    others.emplace_back([] {
      for (unsigned n = 0; n < 50; ++n) {
        Paced(n);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  hot_loop(calls);
  for (std::thread& t : others) t.join();
  say("Paced", 7 * 50);
}

KEEP_CALL void Burst(unsigned calls) {
  for (unsigned i = 0; i < calls; ++i) hot(calls - i);
}

// Nothing for a while, then much at once; in the end for long.
void bursts(unsigned calls) {
  for (unsigned i = 0; i < 100; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Burst(calls / 1000);
  }
  Burst(calls - calls / 1000 * 100);
  say("Burst", 101);
  say("hot", calls);
}

KEEP_CALL void Phase(unsigned calls, bool first) {
  for (unsigned i = 0; i < calls; ++i) first ? hot(i) : other(i);
}

void phases(unsigned calls) {
  for (unsigned i = 0; i < 8; ++i) {
    Phase(calls / 8, i % 2 == 0);
    usleep(100'000);
  }
  say("Phase", 8);
  say("hot", calls / 2);
  say("other", calls / 2);
}

void forks(unsigned calls) {
  hot_loop(calls / 2);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    hot_loop(calls / 2);
    std::fflush(stdout);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

KEEP_CALL void throws(unsigned n) {
  if (n % 64 == 0) throw std::runtime_error("now and then");
  hot(n);
}
KEEP_CALL void passes(unsigned n) { throws(n); }

KEEP_CALL unsigned Catches(unsigned calls) {
  unsigned caught = 0;
  for (unsigned i = 0; i < calls; ++i) {
    try {
      passes(i);
    } catch (const std::exception&) {
      ++caught;
    }
  }
  return caught;
}

void exceptions(unsigned calls) {
  unsigned caught = 0;
  for (unsigned i = 0; i < 50; ++i) caught += Catches(calls / 50);
  say("Catches", 50);
  g_sum = caught;
}

KEEP_CALL unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
KEEP_CALL void Root(unsigned n) { g_sum = fib(n); }

void recursion(unsigned) {
  for (unsigned i = 0; i < 20; ++i) Root(25);
  say("Root", 20);
}

void library(unsigned calls) {
  void* handle = dlopen(std::getenv("BUDGET_LIBRARY"), RTLD_NOW);
  if (handle == nullptr) std::exit(3);
  auto* run = reinterpret_cast<void (*)(unsigned)>(dlsym(handle, "budget_library"));
  for (unsigned i = 0; i < 100; ++i) {
    run(calls / 100);
    Rare(i);
  }
  say("budget_library", 100);
  say("Rare", 100);
  dlclose(handle);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned calls = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1000;
  const struct {
    const char* name;
    void (*run)(unsigned);
  } modes[] = {{"hot", hot_loop},    {"always", always}, {"tiny", tiny_functions},   {"threads", threads},
               {"phases", phases},   {"forks", forks},   {"exceptions", exceptions}, {"recursion", recursion},
               {"library", library}, {"crowd", crowd},   {"one_hot", one_hot},       {"bursts", bursts}};
  for (const auto& mode : modes)
    if (argc > 1 && std::strcmp(argv[1], mode.name) == 0) {
      mode.run(calls);
      return 0;
    }
  return 2;
}
