// Functions that the linker folds into one, by --icf=all: whichever name the one body has, its calls end as they ended.
// Prints which pairs have been folded.
#include <stdio.h>

#include "../steps.h"

volatile int counted;

// These are not folded.
NOINLINE void cleanup() { counted = 1; }
NOINLINE void handled() { counted = 2; }
NOINLINE void reached() { counted = 3; }

struct Failure {};
struct Guard {
  UNTRACED ~Guard() { cleanup(); }
};
using Thrower = void (*)(int);
using Outer = void (*)(Thrower);

#define TWICE(FUNCTION) FUNCTION(one) FUNCTION(two)

#define THROWS(name)                      \
  NOINLINE void throws_##name(int what) { \
    counted = what;                       \
    if (what != 0) throw Failure();       \
  }
TWICE(THROWS)

#define GUARDED(name)                           \
  NOINLINE void guarded_##name(Thrower inner) { \
    Guard guard;                                \
    inner(3);                                   \
    BARRIER();                                  \
  }
TWICE(GUARDED)

#define CATCHES(name)                                        \
  NOINLINE void catches_##name(Outer outer, Thrower inner) { \
    try {                                                    \
      outer(inner);                                          \
    } catch (const Failure&) {                               \
      handled();                                             \
    }                                                        \
    BARRIER();                                               \
  }
TWICE(CATCHES)

#define LAST(name)                     \
  NOINLINE int last_##name(int what) { \
    reached();                         \
    return what + 1;                   \
  }
TWICE(LAST)

#define TAIL(name)                     \
  NOINLINE int tail_##name(int what) { \
    reached();                         \
    return last_##name(what * 2);      \
  }
TWICE(TAIL)

// Ends by a tail call of what throws.
#define TAIL_THROWS(name)                      \
  NOINLINE void tail_throws_##name(int what) { \
    reached();                                 \
    return throws_##name(what);                \
  }
TWICE(TAIL_THROWS)

template <typename Function>
UNTRACED void folded(const char* name, Function* volatile one, Function* volatile two) {
  if (one == two) printf("%s\n", name);
}

int main() {
  catches_one(guarded_one, throws_one);
  catches_two(guarded_two, throws_two);
  catches_one(guarded_two, tail_throws_one);
  catches_two(guarded_one, tail_throws_two);
  throws_one(0);
  throws_two(0);
  counted = tail_one(1) + tail_two(2);
  folded("throws", throws_one, throws_two);
  folded("guarded", guarded_one, guarded_two);
  folded("catches", catches_one, catches_two);
  folded("last", last_one, last_two);
  folded("tail", tail_one, tail_two);
  folded("tail_throws", tail_throws_one, tail_throws_two);
  return 0;
}
