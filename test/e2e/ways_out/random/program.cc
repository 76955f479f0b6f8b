// A program that makes its calls by chance, ends them in every way it knows, and prints the true tree.
//
// usage: program FIRST_SEED COUNT. Each seed runs in a thread of its own, named after it, four at a time. The tree is
// printed as `karst tree --plain --marks` does. Nothing that keeps the books is traced, and no frame has a cleanup for
// the books' sake: calls that were left by an exception or a jump are noticed by whoever goes on (a handler, a cleanup,
// the function that called setjmp), which knows its own depth.
//
// Signals come by raise() and, with even seeds, by a timer that the thread waits for. What such a seed does is the same
// wherever the signal comes.
//
// Compiled with -DTAIL_CALLS where the compiler makes tail calls.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "../steps.h"

#define HELPER static inline __attribute__((always_inline, no_instrument_function))

namespace {

constexpr int kMaxNodes = 4096;
constexpr int kMaxDepth = 14;
constexpr int kKinds = 10;  // of functions, see `table`
constexpr int kVariants = 3;

enum class How : uint8_t { kReturned, kUnwound, kJumped, kTail };

struct Node {
  const char* name;
  int variant;
  int depth;
  How how;
  bool waits;  // for what it called by a tail call
  int hidden;  // functions that run in it and are not seen
};

struct Context {
  uint64_t random;
  int seed;
  int budget;  // calls left
  int nodes;
  int depth;
  int catchers;
  int places;
  int jumps;     // so far
  int barrier;   // no exception may pass the catchers before this one: there is a destructor in between
  int in_a_row;  // tail calls that led to the function that is about to begin, each right behind the one before
  bool exiting;
  bool in_handler;
  volatile bool awaits;  // the timer's signal, which may come at any instruction
  timer_t timer;
  Node node[kMaxNodes];
  int stack[256];
  bool catches_long[256];  // by number of the catcher
  sigjmp_buf place[256];
};

thread_local Context* g_context;

HELPER unsigned below(Context& c, unsigned n) {
  c.random ^= c.random << 13;
  c.random ^= c.random >> 7;
  c.random ^= c.random << 17;
  return static_cast<unsigned>((c.random >> 11) % n);
}

HELPER void enter(Context& c, const char* name, int variant) {
  if (c.nodes == kMaxNodes || c.depth == 255) abort();
  c.node[c.nodes] = {name, variant, c.depth, How::kReturned, false, 0};
  c.stack[c.depth++] = c.nodes++;
}

HELPER void end_to(Context& c, int depth, How how) {
  while (c.depth > depth) c.node[c.stack[--c.depth]].how = how;
}

HELPER Node& top(Context& c) { return c.node[c.stack[c.depth - 1]]; }

// What was called has returned, and so have those that called it by a tail call.
UNTRACED void end_waiting(Context& c) {
  while (c.depth != 0 && top(c).waits && top(c).hidden == 0) {
    top(c).how = How::kTail;
    --c.depth;
  }
}

// Of a function that is not seen.
HELPER int leave_hidden(Context& c) {
  --top(c).hidden;
  end_waiting(c);
  return 0;
}

HELPER int leave(Context& c) {
  --c.depth;
  end_waiting(c);
  BARRIER();
  return c.depth;
}

// Karst has so many wait at once (runtime/modules/tail_frames.h); more are over as they make their tail calls.
constexpr int kMostInARow = 8;

HELPER void call(Context& c, int (*function)(Context&)) {
  c.in_a_row = 0;
  function(c);
}

using Function = int (*)(Context&);
extern Function table[kKinds * kVariants];

// Odd seeds do without the last kind, the timer's.
HELPER Function choose(Context& c) { return table[below(c, (c.seed % 2 == 0 ? kKinds : kKinds - 1) * kVariants)]; }

// The innermost catcher of the type that an exception thrown now would reach.
HELPER bool may_throw(const Context& c, bool of_long) {
  for (int i = c.catchers; i-- > c.barrier;)
    if (c.catches_long[i] == of_long) return true;
  return false;
}

// What a function does: calls, and now and then a way out for good.
HELPER void act(Context& c) {
  unsigned calls = c.depth < kMaxDepth ? below(c, 4) : 0;
  for (; calls != 0 && c.budget > 0; --calls) {
    --c.budget;
    call(c, choose(c));
  }
  BARRIER();
}

HELPER void maybe_leave(Context& c) {
  const unsigned what = below(c, 12);
  if (what == 0 && may_throw(c, false)) throw 1;
  if (what == 1 && may_throw(c, true)) throw 1L;
  if (what == 2 && c.places != 0 && !c.exiting) siglongjmp(c.place[below(c, static_cast<unsigned>(c.places))], 1);
}

template <int kVariant>
NOINLINE int plain(Context& c) {
  enter(c, "plain", kVariant);
  act(c);
  maybe_leave(c);
  act(c);
  return leave(c);
}

template <int kVariant>
NOINLINE int leaf(Context& c) {
  enter(c, "leaf", kVariant);
  maybe_leave(c);
  BARRIER();
  return leave(c);
}

struct Guard {
  Context& c;
  int depth;
  int catchers;
  int places;
  __attribute__((no_instrument_function, always_inline)) explicit Guard(Context& of)
      : c(of), depth(of.depth), catchers(of.catchers), places(of.places) {}
  UNTRACED ~Guard() {
    const int barrier = c.barrier;
    end_to(c, depth, How::kUnwound);
    c.catchers = catchers;
    c.places = c.exiting ? 0 : places;
    c.barrier = c.catchers;
    if (c.budget-- > 0 && c.depth < kMaxDepth) call(c, choose(c));
    c.barrier = barrier;
    BARRIER();
  }
};

template <int kVariant>
NOINLINE int guarded(Context& c) {
  enter(c, "guarded", kVariant);
  {
    Guard guard(c);
    act(c);
    maybe_leave(c);
  }
  return leave(c);
}

// Variants 0 and 1 catch ints, 2 longs.
template <int kVariant>
HELPER void catch_around(Context& c) {
  constexpr bool kLong = kVariant == 2;
  const int depth = c.depth;
  const int catchers = c.catchers;
  const int places = c.places;
  const int barrier = c.barrier;
  const bool in_handler = c.in_handler;
  const int hidden = top(c).hidden;
  c.catches_long[c.catchers++] = kLong;
  const auto caught = [&]() __attribute__((always_inline, no_instrument_function)) {
    end_to(c, depth, How::kUnwound);
    top(c).hidden = hidden;
    c.catchers = catchers;
    c.places = places;
    c.barrier = barrier;
    c.in_handler = in_handler;
    const int jumps = c.jumps;
    if (c.budget-- > 0 && c.depth < kMaxDepth) call(c, choose(c));
    // A jump out of a handler leaves that one's exception the current one.
    return below(c, 3) == 0 && jumps == c.jumps && may_throw(c, kLong);
  };
  if constexpr (kLong) {
    try {
      act(c);
      maybe_leave(c);
      c.catchers = catchers;
    } catch (long) {
      if (caught()) throw;
    }
  } else {
    try {
      act(c);
      maybe_leave(c);
      c.catchers = catchers;
    } catch (int) {
      if (caught()) throw;
    }
  }
}

template <int kVariant>
NOINLINE int catcher(Context& c) {
  enter(c, "catcher", kVariant);
  catch_around<kVariant>(c);
  return leave(c);
}

template <int kVariant>
UNTRACED int hidden_catcher(Context& c) {
  ++top(c).hidden;
  catch_around<kVariant>(c);
  return leave_hidden(c);
}

// setjmp keeps its function from being inlined: the same body in a traced function and in one that is not.
#define SET_AROUND(variant)                                            \
  Context* volatile kept = &context;                                   \
  volatile int depth = context.depth;                                  \
  volatile int catchers = context.catchers;                            \
  volatile int places = context.places;                                \
  volatile int barrier = context.barrier;                              \
  volatile bool in_handler = context.in_handler;                       \
  volatile int hidden = top(context).hidden;                           \
  volatile int rounds = 0;                                             \
  if (sigsetjmp(context.place[context.places], (variant) == 0) != 0) { \
    ++kept->jumps;                                                     \
    end_to(*kept, depth, How::kJumped);                                \
    top(*kept).hidden = hidden;                                        \
    kept->catchers = catchers;                                         \
    kept->places = places;                                             \
    kept->barrier = barrier;                                           \
    kept->in_handler = in_handler;                                     \
  }                                                                    \
  if (rounds < 2) {                                                    \
    rounds = rounds + 1;                                               \
    kept->places = places + 1;                                         \
    act(*kept);                                                        \
    maybe_leave(*kept);                                                \
    kept->places = places;                                             \
  }

template <int kVariant>
NOINLINE int setter(Context& context) {
  enter(context, "setter", kVariant);
  SET_AROUND(kVariant)
  return leave(*kept);
}

template <int kVariant>
UNTRACED int hidden_setter(Context& context) {
  ++top(context).hidden;
  SET_AROUND(kVariant)
  return leave_hidden(*kept);
}

// Through a pointer that may throw: the C library says that raise() does not.
int (*volatile raise_signal)(int) = raise;

template <int kVariant>
NOINLINE int raiser(Context& c) {
  enter(c, "raiser", kVariant);
  if (!c.in_handler) raise_signal(kVariant == 0 ? SIGUSR1 : SIGUSR2);
  BARRIER();
  return leave(*g_context);
}

NOINLINE void handler(int) {
  Context& c = *g_context;
  enter(c, "handler", -1);
  c.in_handler = true;
  act(c);
  c.in_handler = false;
  maybe_leave(c);
  BARRIER();
  leave(c);
}

// Interrupted at an instruction of the timer's choice. What the handler calls is the same wherever that is: the loop
// makes no traced calls, and chance is asked before it and by the handler alone.
template <int kVariant>
NOINLINE int interrupted(Context& c) {
  enter(c, "interrupted", kVariant);
  if (!c.in_handler) {
    itimerspec soon{};
    soon.it_value.tv_nsec = 1000 + below(c, 20000);
    c.awaits = true;
    timer_settime(c.timer, 0, &soon, nullptr);
    while (c.awaits) BARRIER();
  }
  act(c);
  return leave(*g_context);
}

NOINLINE void interrupting(Context& c) {
  enter(c, "interrupting", -1);
  const int barrier = c.barrier;
  c.barrier = c.catchers;  // nothing is thrown where no call is
  c.in_handler = true;
  act(c);
  c.in_handler = false;
  c.barrier = barrier;
  if (c.places != 0 && !c.exiting && below(c, 3) == 0) {
    siglongjmp(c.place[below(c, static_cast<unsigned>(c.places))], 1);
  }
  BARRIER();
  leave(c);
}

UNTRACED void on_timer(int) {
  Context& c = *g_context;
  if (!c.awaits) return;
  c.awaits = false;
  interrupting(c);
  BARRIER();
}

template <int kVariant>
NOINLINE int tail(Context& c) {
  const int in_a_row = c.in_a_row;
  enter(c, "tail", kVariant);
  act(c);
  if (c.depth >= kMaxDepth || c.budget-- <= 0) return leave(c);
  const Function next = choose(c);
#ifdef TAIL_CALLS
  if (in_a_row < kMostInARow)
    top(c).waits = true;
  else
    end_to(c, c.depth - 1, How::kTail);
  c.in_a_row = in_a_row < kMostInARow ? in_a_row + 1 : in_a_row;
  return next(c);
#else
  call(c, next);
  BARRIER();
  return leave(c);
#endif
}

#define KIND(name) name<0>, name<1>, name<2>
Function table[kKinds * kVariants] = {KIND(plain),          KIND(leaf),       KIND(guarded),       KIND(catcher),
                                      KIND(hidden_catcher), KIND(setter),     KIND(hidden_setter), KIND(raiser),
                                      KIND(tail),           KIND(interrupted)};

NOINLINE int exits_inside(Context& c) {
  enter(c, "exits_inside", -1);
  Guard guard(c);
  c.exiting = true;
  c.places = 0;
  pthread_exit(nullptr);
}

NOINLINE void* seed(void* argument) {
  Context& c = *static_cast<Context*>(argument);
  enter(c, "seed", -1);
  for (int round = 0; round < 6; ++round) {
    c.budget = 40;
    catch_around<0>(c);
    c.budget = 40;
    catch_around<2>(c);
  }
  if (below(c, 2) == 0) {
    c.budget = 10;
    exits_inside(c);
  }
  leave(c);
  return nullptr;
}

UNTRACED void* run(void* argument) {
  auto* c = static_cast<Context*>(argument);
  g_context = c;
  char name[16];
  snprintf(name, sizeof name, "seed-%d", c->seed);
  prctl(PR_SET_NAME, name);
  stack_t stack{};
  stack.ss_size = 1 << 20;
  stack.ss_sp = malloc(stack.ss_size);
  sigaltstack(&stack, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGRTMIN;
  event._sigev_un._tid = gettid();
  if (timer_create(CLOCK_MONOTONIC, &event, &c->timer) != 0) abort();
  return seed(argument);
}

UNTRACED void print(const Context& c) {
  printf("# thread seed-%d\n", c.seed);
  static const char* const kWords[] = {"", "  [unwound]", "  [jumped]", "  [tail]"};
  for (int i = 0; i < c.nodes; ++i) {
    const Node& n = c.node[i];
    const char* how = kWords[static_cast<int>(n.how)];
    if (n.variant >= 0)
      printf("%*s%s<%d>%s\n", n.depth * 2, "", n.name, n.variant, how);
    else
      printf("%*s%s%s\n", n.depth * 2, "", n.name, how);
  }
}

UNTRACED void handle(int number, void (*by)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = by;
  action.sa_flags = flags | SA_NODEFER;
  sigaction(number, &action, nullptr);
}

}  // namespace

UNTRACED int main(int, char** argv) {
  handle(SIGUSR1, handler, 0);
  handle(SIGUSR2, handler, SA_ONSTACK);
  handle(SIGRTMIN, on_timer, 0);
  const int first = atoi(argv[1]);
  const int count = atoi(argv[2]);
  constexpr int kAtOnce = 4;
  auto* contexts = static_cast<Context*>(calloc(kAtOnce, sizeof(Context)));
  for (int at = 0; at < count; at += kAtOnce) {
    pthread_t threads[kAtOnce];
    const int some = count - at < kAtOnce ? count - at : kAtOnce;
    for (int i = 0; i < some; ++i) {
      memset(&contexts[i], 0, sizeof(Context));
      contexts[i].seed = first + at + i;
      contexts[i].random = (static_cast<uint64_t>(contexts[i].seed) + 1) * 0x9E3779B97F4A7C15U;
      pthread_create(&threads[i], nullptr, run, &contexts[i]);
    }
    for (int i = 0; i < some; ++i) {
      pthread_join(threads[i], nullptr);
      timer_delete(contexts[i].timer);
      end_to(contexts[i], 0, How::kUnwound);
      print(contexts[i]);
    }
  }
  free(contexts);
  return 0;
}
