// Tail calls: direct, in chains, through a pointer, virtual, on one branch only. Compiled with optimisation alone.
#include "steps.h"

STEP(work)

NOINLINE int last(int x) {
  work();
  return x + 1;
}
NOINLINE int second(int x) {
  work();
  return last(x * 2);
}
NOINLINE int first(int x) {
  work();
  return second(x + 3);
}

int (*volatile pointer)(int) = last;
NOINLINE int through_pointer(int x) {
  work();
  return pointer(x);
}

struct Base {
  virtual int call(int x) = 0;
};
struct Derived : Base {
  NOINLINE int call(int x) override {
    work();
    return x;
  }
};
Derived derived;
Base* volatile base = &derived;
NOINLINE int through_virtual(int x) {
  work();
  return base->call(x);
}

NOINLINE int on_one_branch(int x) {
  if (x > 0) return last(x);
  work();
  return 5;
}

// Might return, and might return anything: of what never does a compiler makes no tail call.
volatile int unknown = 1;
NOINLINE int throws(int x) {
  work();
  if (unknown != 0) throw x;
  return unknown;
}
NOINLINE int tail_calls_a_thrower(int x) {
  work();
  return throws(x + 1);
}

int main() {
  int sum = first(1) + through_pointer(2) + through_virtual(3) + on_one_branch(1) + on_one_branch(0);
  try {
    sum += tail_calls_a_thrower(1);
  } catch (int) {
    work();
  }
  work();
  return sum == 0;
}
