// Fibers that say nothing to Karst, on stacks of several kinds: they switch by chance, out of any depth, and log what
// they do. `karst run --fibers=stack` must tell the same trees.
//
// usage: stacks SEED FIBERS THREADS STEPS KIND [WORD...]
//   KIND     malloc:BYTES   side by side in the heap       arena:BYTES   in one piece of memory, without gaps
//            mmap:BYTES     with a guard below each
//   direct   a fiber goes on with another one itself       reuse    stacks are used again, also of those that never
//   ended signals  handlers come: on the fiber's stack           altstack and on a stack of their own large    frames
//   of 100 KiB                             deep     recursion of 5000 calls
//
// Prints "# fiber" and its calls as `karst tree --plain` does for each stack; a fiber that begins where one has ended
// goes on with its tree. Then "# worker N" for each thread, and how often handlers ran.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "stack_switch.h"

#define NOINLINE __attribute__((noinline))
#define BARRIER() asm volatile("" ::: "memory")

namespace {

using Log = std::vector<std::string>;

struct Memory {
  char* begin = nullptr;
  std::size_t size = 0;
};

struct Fiber {
  void* stack = nullptr;
  Memory memory;
  std::minstd_rand random;
  std::shared_ptr<Log> log;
  std::size_t depth = 0;
  int steps = 0;
  bool over = false;
  bool was_deep = false;
};

struct Worker {
  void* stack = nullptr;
  Fiber* works_on = nullptr;
  std::string place;  // of the log: spaces
  Log log;
};

struct Wanted {
  std::string kind;
  std::size_t size = 0;
  bool direct = false, reuse = false, signals = false, altstack = false, large = false, deep = false;
  int steps = 0;
} wanted;

std::mutex lock;
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber*> ready;
std::vector<std::shared_ptr<Log>> logs;
std::atomic<int> left, to_come, handled_calls;

// Never inlined: a fiber goes on in another thread, whose variables lie elsewhere.
KARST_NOTRACE NOINLINE Worker*& here() {
  static thread_local Worker* worker;
  asm volatile("");
  return worker;
}

KARST_NOTRACE Memory new_memory() {
  static char* arena;
  Memory m{nullptr, wanted.size};
  if (wanted.kind == "malloc") {
    m.begin = static_cast<char*>(std::malloc(m.size));
  } else if (wanted.kind == "arena") {
    if (arena == nullptr)
      arena =
          static_cast<char*>(mmap(nullptr, m.size << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    m.begin = arena;
    arena += m.size;
  } else {
    m.begin = static_cast<char*>(mmap(nullptr, m.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(m.begin, 4096, PROT_NONE);
  }
  return m;
}

KARST_NOTRACE void start();

KARST_NOTRACE void prepare(Fiber& f, Memory memory, std::shared_ptr<Log> log) {
  f.memory = memory;
  auto* top = reinterpret_cast<std::uintptr_t*>(memory.begin + memory.size / 16 * 16);
  *--top = 0;
  *--top = reinterpret_cast<std::uintptr_t>(start);
  for (int i = 0; i < 6; ++i) *--top = 0;
  f.stack = top;
  f.log = std::move(log);
  f.depth = 0;
  f.over = false;
  f.steps = wanted.steps;
}

KARST_NOTRACE std::shared_ptr<Log> new_log() {
  logs.push_back(std::make_shared<Log>());
  return logs.back();
}

KARST_NOTRACE Fiber* take(std::minstd_rand& random) {
  std::lock_guard guard(lock);
  if (ready.empty()) return nullptr;
  std::swap(ready[random() % ready.size()], ready.back());
  Fiber* f = ready.back();
  ready.pop_back();
  return f;
}

KARST_NOTRACE void give(Fiber& f) {
  std::lock_guard guard(lock);
  ready.push_back(&f);
}

KARST_NOTRACE void suspend(Fiber& f) {
  f.log->push_back(std::string(2 * f.depth, ' ') + "[suspended]");
  Worker* w = here();
  Fiber* next = wanted.direct ? take(f.random) : nullptr;
  if (next == nullptr) return switch_stack(&f.stack, w->stack);
  w->log.push_back(w->place + "[fiber]");
  w->works_on = next;
  give(f);  // one thread alone
  switch_stack(&f.stack, next->stack);
}

KARST_NOTRACE inline long nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

class Logged {
 public:
  KARST_NOTRACE Logged(Fiber& f, const char* name) : f_(f) {
    f.log->push_back(std::string(2 * f.depth++, ' ') + name);
    // No call is shorter than a step of the TSC, which --min-duration=1ns would leave out.
    for (const long begin = nanoseconds(); nanoseconds() - begin < 40;) continue;
  }
  KARST_NOTRACE ~Logged() { --f_.depth; }

 private:
  Fiber& f_;
};

#include "steps.h"

NOINLINE void large(Fiber& f) {
  Logged logged(f, "large");
  char frame[100 << 10];
  frame[chance(f, sizeof frame)] = 1;
  asm volatile("" ::"r"(frame) : "memory");
  step(f);
  waits(f);
  asm volatile("" ::"r"(frame) : "memory");
}
NOINLINE void taken(Fiber& f) {
  Logged logged(f, "taken");
  auto* frame = static_cast<char*>(__builtin_alloca(90000 + chance(f, 20000)));
  asm volatile("" ::"r"(frame) : "memory");
  waits(f);
  step(f);
  asm volatile("" ::"r"(frame) : "memory");
}
NOINLINE void deeper(Fiber& f, int n) {
  Logged logged(f, "deeper");
  if (n == 0) {
    waits(f);
  } else {
    deeper(f, n - 1);
  }
  BARRIER();
}
KARST_NOTRACE NOINLINE void step(Fiber& f) {
  if (f.depth > 10 || f.steps-- <= 0) return leaf(f);
  if (wanted.large && chance(f, 4) == 0) return f.depth > 4 ? leaf(f) : chance(f, 2) == 0 ? large(f) : taken(f);
  if (wanted.deep && !f.was_deep && f.steps < wanted.steps / 2) {
    f.was_deep = true;
    return deeper(f, 5000);
  }
  switch (chance(f, 6)) {
    case 0:
      return outer(f);
    case 1:
      return middle(f);
    case 2:
      return guarded(f);
    case 3:
    case 4:
      return waits(f);
    default:
      return leaf(f);
  }
}

NOINLINE void body(Fiber& f) {
  Logged logged(f, "body");
  while (f.steps > 0) step(f);
  BARRIER();
}

/// Never goes on, though its calls have not ended.
NOINLINE void gives_up(Fiber& f) {
  Logged logged(f, "gives_up");
  leaf(f);
  f.log->push_back(std::string(2 * f.depth, ' ') + "[suspended]");
  f.over = true;
  switch_stack(&f.stack, here()->stack);
}

KARST_NOTRACE void start() {
  Fiber& f = *here()->works_on;
  body(f);
  if (wanted.reuse && chance(f, 2) == 0) gives_up(f);
  f.over = true;
  switch_stack(&f.stack, here()->stack);
  std::abort();
}

NOINLINE void resume(Worker& w, Fiber& f) {
  w.log.push_back("  resume");
  w.log.push_back("    [fiber]");
  w.place = "    ";
  w.works_on = &f;
  switch_stack(&w.stack, f.stack);
  BARRIER();
}

/// What comes where a fiber has ended.
KARST_NOTRACE void end(Worker& w) {
  Fiber& f = *w.works_on;
  if (!f.over) return give(f);
  std::lock_guard guard(lock);
  if (wanted.reuse && to_come > 0) {
    --to_come;
    prepare(f, f.memory, f.depth == 0 ? f.log : new_log());
    ready.push_back(&f);
    return;
  }
  --left;
}

NOINLINE void work(Worker& w, unsigned seed) {
  w.log.push_back("work");
  std::minstd_rand random(seed);
  while (left != 0) {
    Fiber* f = take(random);
    if (f == nullptr) continue;
    resume(w, *f);
    end(w);
  }
}

struct Start {
  Worker worker;
  unsigned seed;
};

NOINLINE void handled() {
  ++handled_calls;
  BARRIER();
}
KARST_NOTRACE void handler(int) { handled(); }

KARST_NOTRACE void* run(void* argument) {
  auto& started = *static_cast<Start*>(argument);
  here() = &started.worker;
  karst_thread_set_name(("worker " + std::to_string(started.seed)).c_str());
  stack_t own{};
  own.ss_size = 64 << 10;
  own.ss_sp = std::malloc(own.ss_size);
  if (wanted.altstack) sigaltstack(&own, nullptr);
  work(started.worker, started.seed);
  return nullptr;
}

KARST_NOTRACE void print(const std::string& name, const Log& log) {
  std::printf("# %s\n", name.c_str());
  for (const std::string& line : log) std::printf("%s\n", line.c_str());
}

}  // namespace

KARST_NOTRACE int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const unsigned seed = std::atoi(argv[1]);
  const int count = std::atoi(argv[2]);
  const int threads = std::atoi(argv[3]);
  wanted.steps = std::atoi(argv[4]);
  const char* colon = std::strchr(argv[5], ':');
  if (colon == nullptr) return 2;
  wanted.kind.assign(argv[5], colon - argv[5]);
  wanted.size = std::strtoul(colon + 1, nullptr, 10);
  for (int i = 6; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "direct") wanted.direct = true;
    if (word == "reuse") wanted.reuse = true;
    if (word == "signals") wanted.signals = true;
    if (word == "altstack") wanted.signals = wanted.altstack = true;
    if (word == "large") wanted.large = true;
    if (word == "deep") wanted.deep = true;
  }
  left = count;
  to_come = wanted.reuse ? 3 * count : 0;
  for (int i = 0; i < count; ++i) {
    fibers.push_back(std::make_unique<Fiber>());
    fibers.back()->random.seed(seed * 1000 + i);
    prepare(*fibers.back(), new_memory(), new_log());
    ready.push_back(fibers.back().get());
  }
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | (wanted.altstack ? SA_ONSTACK : 0);
  sigaction(SIGUSR1, &action, nullptr);
  std::vector<Start> starts(threads);
  std::vector<pthread_t> ids(threads);
  for (int i = 0; i < threads; ++i) {
    starts[i].seed = i;
    pthread_create(&ids[i], nullptr, run, &starts[i]);
  }
  if (wanted.signals)
    for (unsigned i = 0; left != 0; ++i)
      if (i % 64 == 0) pthread_kill(ids[i / 64 % ids.size()], SIGUSR1);
  for (pthread_t id : ids) pthread_join(id, nullptr);
  for (const auto& log : logs) print("fiber", *log);
  for (const Start& s : starts) print("worker " + std::to_string(s.seed), s.worker.log);
  std::printf("handled %d\n", handled_calls.load());
}
