// Fibers that run in several threads by chance, and log what they do: the trees that Karst must tell.
//
// usage: random SEED FIBERS THREADS STEPS [signals]
// Prints for each fiber "# NAME", then its calls as `karst tree --plain` prints them, then for each thread "# worker N"
// with the fibers that it worked on. Each call also says which it is, by a note: a history that lost its begin is
// checked by these.
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "stack_switch.h"

#define NOINLINE __attribute__((noinline))
#define BARRIER() asm volatile("" ::: "memory")

namespace {

struct Fiber {
  std::string name;
  void* stack = nullptr;
  std::minstd_rand random;
  std::vector<std::string> log;
  std::size_t depth = 0;
  int steps = 0;
  int calls = 0;
  bool over = false;
  bool begun = false;
  bool marks_itself = false;  // the fiber says when it comes and goes, not who switches to it
};

struct Worker {
  void* stack = nullptr;
  Fiber* works_on = nullptr;
  std::vector<std::string> log;
};

std::mutex lock;
std::vector<Fiber> fibers;
std::vector<Fiber*> ready;
std::atomic<int> left, handled_calls;
std::atomic<bool> over;

// Never inlined: a fiber goes on in another thread, whose variables lie elsewhere.
KARST_NOTRACE NOINLINE Worker*& here() {
  static thread_local Worker* worker;
  asm volatile("");
  return worker;
}

KARST_NOTRACE void enter(Fiber& f) { karst_fiber_enter(reinterpret_cast<std::uintptr_t>(&f), f.name.c_str()); }

KARST_NOTRACE void suspend(Fiber& f) {
  Worker* worker = here();
  f.log.push_back(std::string(2 * f.depth, ' ') + "[suspended]");
  if (f.marks_itself) karst_fiber_leave();
  switch_stack(&f.stack, worker->stack);
  if (f.marks_itself) enter(f);
}

/// A call in the log, until the end of its function.
class Logged {
 public:
  KARST_NOTRACE Logged(Fiber& f, const char* name) : f_(f) {
    f.log.push_back(std::string(2 * f.depth++, ' ') + name);
    char text[200];
    std::snprintf(text, sizeof text, "%s %d %s", f.name.c_str(), f.calls++, name);
    karst_text(text);
  }
  KARST_NOTRACE ~Logged() { --f_.depth; }

 private:
  Fiber& f_;
};

#include "steps.h"

KARST_NOTRACE NOINLINE void step(Fiber& f) {
  if (f.depth > 20 || f.steps-- <= 0) return leaf(f);
  switch (chance(f, 6)) {
    case 0:
      return outer(f);
    case 1:
      return middle(f);
    case 2:
      return guarded(f);
    case 3:
      return waits(f);
    case 4:
      return suspend(f);
    default:
      return leaf(f);
  }
}

NOINLINE void body(Fiber& f) {
  Logged logged(f, "body");
  while (f.steps > 0) step(f);
  BARRIER();
}

KARST_NOTRACE void start() {
  Fiber& f = *here()->works_on;
  if (f.marks_itself) enter(f);
  body(f);
  if (chance(f, 2) == 0) {  // what comes without a call between is no wait of any call
    f.steps = 3;
    body(f);
  }
  f.over = true;
  Worker* worker = here();
  if (f.marks_itself) karst_fiber_leave();
  switch_stack(&f.stack, worker->stack);
  std::abort();
}

NOINLINE void resume(Worker& w, Fiber& f) {
  w.log.push_back("  resume");
  w.log.push_back("    [fiber " + f.name + "]");
  w.works_on = &f;
  if (!f.marks_itself) enter(f);
  switch_stack(&w.stack, f.stack);
  if (!f.marks_itself) karst_fiber_leave();
  BARRIER();
}

KARST_NOTRACE Fiber* take(std::minstd_rand& random) {
  std::lock_guard guard(lock);
  if (ready.empty()) return nullptr;
  std::swap(ready[random() % ready.size()], ready.back());
  Fiber* f = ready.back();
  ready.pop_back();
  return f;
}

NOINLINE void work(Worker& w, unsigned seed) {
  w.log.push_back("work");
  std::minstd_rand random(seed);
  while (left != 0) {
    Fiber* f = take(random);
    if (f == nullptr) continue;
    resume(w, *f);
    if (f->over) {
      --left;
      continue;
    }
    std::lock_guard guard(lock);
    ready.push_back(f);
  }
}

struct Start {
  Worker worker;
  unsigned seed;
};

KARST_NOTRACE void* run(void* argument) {
  auto& start = *static_cast<Start*>(argument);
  here() = &start.worker;
  karst_thread_set_name(("worker " + std::to_string(start.seed)).c_str());
  work(start.worker, start.seed);
  return nullptr;
}

NOINLINE void handled() {
  ++handled_calls;
  BARRIER();
}
KARST_NOTRACE void handler(int) { handled(); }

KARST_NOTRACE void print(const std::string& name, const std::vector<std::string>& log) {
  std::printf("# %s\n", name.c_str());
  for (const std::string& line : log) std::printf("%s\n", line.c_str());
}

}  // namespace

KARST_NOTRACE int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const unsigned seed = std::atoi(argv[1]);
  fibers.resize(std::atoi(argv[2]));
  left = static_cast<int>(fibers.size());
  const int threads = std::atoi(argv[3]);
  for (std::size_t i = 0; i < fibers.size(); ++i) {
    Fiber& f = fibers[i];
    f.name = "fiber no. " + std::to_string(i);
    f.random.seed(seed * 1000 + i);
    f.steps = std::atoi(argv[4]);
    f.marks_itself = i % 2 != 0;
    f.stack = new_stack(start, 256 << 10);
    ready.push_back(&f);
  }
  signal(SIGUSR1, handler);
  std::vector<Start> starts(threads);
  std::vector<pthread_t> ids(threads);
  for (int i = 0; i < threads; ++i) {
    starts[i].seed = i;
    pthread_create(&ids[i], nullptr, run, &starts[i]);
  }
  if (argc > 5)
    for (unsigned i = 0; left != 0; ++i)
      if (i % 64 == 0) pthread_kill(ids[i / 64 % ids.size()], SIGUSR1);
  over = true;
  for (pthread_t id : ids) pthread_join(id, nullptr);
  for (const Fiber& f : fibers) print(f.name, f.log);
  for (const Start& s : starts) print("worker " + std::to_string(s.seed), s.worker.log);
  std::printf("handled %d\n", handled_calls.load());
}
