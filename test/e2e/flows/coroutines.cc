// Coroutines of each kind: made suspended or not, suspended at their end (and destroyed) or not. Threads take turns to
// resume them, and before one resumption all sleep. Prints for each, in the order in which they began: its function,
// its frame, how often it was resumed, how long it was suspended at most (ns), and whether it was destroyed.
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <algorithm>
#include <coroutine>
#include <deque>
#include <thread>
#include <vector>

#define INLINE __attribute__((always_inline)) inline

struct Told {
  const char* function;
  const void* frame = nullptr;
  int resumed = 0;
  int64_t since = 0, longest = 0;
  bool destroyed = false;
};

static INLINE int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

struct Suspend {
  Told& told;
  INLINE bool await_ready() const noexcept { return false; }
  INLINE void await_suspend(std::coroutine_handle<>) const noexcept { told.since = now(); }
  INLINE void await_resume() const noexcept {}
};

template <typename Initial, typename Final>
struct Task {
  struct promise_type {
    INLINE promise_type(Told& of, int) : told(of) {}
    INLINE Task get_return_object() {
      const auto handle = std::coroutine_handle<promise_type>::from_promise(*this);
      told.frame = handle.address();
      return {handle.address()};
    }
    INLINE Initial initial_suspend() noexcept { return {}; }
    INLINE Final final_suspend() noexcept { return {}; }
    INLINE void return_void() {}
    INLINE void unhandled_exception() {}
    Told& told;
  };
  void* frame;
};

#define KEEP_CALL __attribute__((noinline))

static volatile int g_sum;

KEEP_CALL void work(int n) { g_sum = n; }

#define COROUTINE(type, name)                   \
  KEEP_CALL type name(Told& told, int rounds) { \
    for (int i = 0; i < rounds; ++i) {          \
      work(i);                                  \
      co_await Suspend{told};                   \
    }                                           \
    work(rounds);                               \
  }

using Lazy = Task<std::suspend_always, std::suspend_always>;
using Eager = Task<std::suspend_never, std::suspend_always>;
using Detached = Task<std::suspend_never, std::suspend_never>;

COROUTINE(Lazy, lazy)
COROUTINE(Eager, eager)
COROUTINE(Detached, detached)

struct Running {
  Told* told;
  void* frame;
  int left;  // resumptions
};

static INLINE void resume(Running& of) {
  if (of.told->since != 0) of.told->longest = std::max(of.told->longest, now() - of.told->since);
  ++of.told->resumed;
  --of.left;
  __builtin_coro_resume(of.frame);
}

static std::deque<Told> g_told;
static std::vector<Running> g_running;

static void begin(int kind, int rounds) {
  static const char* const kNames[] = {"lazy", "eager", "detached"};
  Told& told = g_told.emplace_back(Told{kNames[kind]});
  void* const frame = kind == 0   ? lazy(told, rounds).frame
                      : kind == 1 ? eager(told, rounds).frame
                                  : detached(told, rounds).frame;
  g_running.push_back({&told, frame, rounds + (kind == 0)});
}

static void resume_all() {
  for (Running& of : g_running)
    if (of.left != 0) resume(of);
}

int main() {
  // Waves: those of the next one get the frames of the last one.
  for (int wave = 0; wave < 4; ++wave) {
    for (int kind = 0; kind < 3; ++kind)
      for (int rounds = 1; rounds < 5; ++rounds) begin(kind, rounds);
    for (int turn = 0; turn < 5; ++turn) {
      const timespec some{0, 10'000'000};
      if (turn == 2) nanosleep(&some, nullptr);
      if (turn % 2 == 0)
        resume_all();
      else
        std::thread(resume_all).join();
    }
    for (Running& of : g_running) {
      if (of.told->function[0] == 'd') continue;
      __builtin_coro_destroy(of.frame);
      of.told->destroyed = true;
    }
    g_running.clear();
  }
  for (const Told& told : g_told)
    printf("%s %p %d %lld %d\n", told.function, told.frame, told.resumed, static_cast<long long>(told.longest),
           told.destroyed);
}
