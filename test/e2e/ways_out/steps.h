/* What the programs of this corpus share. Each has the tree of its calls beside it, NAME.tree, which is the same with
   every compiler and at every level of optimisation: nothing here is inlined, cloned or called by a tail call. */
#ifndef STEPS_H
#define STEPS_H

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#define UNTRACED NOINLINE __attribute__((no_instrument_function, xray_never_instrument))
#else
#define NOINLINE __attribute__((noinline, noclone))
#define UNTRACED NOINLINE __attribute__((no_instrument_function))
#endif

/* Keeps the compiler from moving or merging what stands around it, and a call before it from becoming a tail call. */
#define BARRIER() __asm__ volatile("" ::: "memory")

/* A function that does nothing but show up in the tree. */
#define STEP(name) \
  NOINLINE void name(void) { BARRIER(); }

#endif
