// What fibers do at random: included where Fiber, Logged, suspend() and step() are the program's own, behind them.
#pragma once

KARST_NOTRACE unsigned chance(Fiber& f, unsigned of) { return static_cast<unsigned>(f.random()) % of; }

void step(Fiber& f);

NOINLINE void leaf(Fiber& f) {
  Logged logged(f, "leaf");
  BARRIER();
}
NOINLINE void waits(Fiber& f) {
  Logged logged(f, "waits");
  suspend(f);
  BARRIER();
}
NOINLINE void outer(Fiber& f) {
  Logged logged(f, "outer");
  step(f);
  step(f);
  BARRIER();
}
NOINLINE void middle(Fiber& f) {
  Logged logged(f, "middle");
  leaf(f);
  step(f);
  BARRIER();
}
NOINLINE void throws(Fiber& f) {
  Logged logged(f, "throws");
  step(f);
  throw f.steps;
}
NOINLINE void guarded(Fiber& f) {
  Logged logged(f, "guarded");
  try {
    throws(f);
  } catch (int) {
  }
  leaf(f);
  BARRIER();
}
