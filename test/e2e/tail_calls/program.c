// Tail calls of all kinds. What is printed must be the same untraced; the functions named waits_* take 2 ms each.
#define _GNU_SOURCE
#include <complex.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
volatile int sink;
struct timespec two_ms = {0, 2000000};

// Into code that is not traced, in chains, through pointers.
NOINLINE int waits_directly(struct timespec* t) {
  sink = 1;
  return nanosleep(t, NULL);
}
NOINLINE int waits_in_a_chain(struct timespec* t) {
  sink = 2;
  return waits_directly(t);
}
NOINLINE int waits_in_a_longer_chain(struct timespec* t) {
  sink = 3;
  return waits_in_a_chain(t);
}
int (*volatile pointer)(const struct timespec*, struct timespec*) = nanosleep;
NOINLINE int waits_by_pointer(struct timespec* t) {
  sink = 4;
  return pointer(t, NULL);
}
struct Waiter {
  int (*wait)(struct Waiter*);
  struct timespec time;
};
NOINLINE int waits_for_a_member(struct Waiter* w) {
  sink = 5;
  return nanosleep(&w->time, NULL);
}
NOINLINE int waits_by_member(struct Waiter* w) {
  sink = 6;
  return w->wait(w);
}
NOINLINE int waits_on_one_branch(int i, struct timespec* t) {
  sink = i;
  if (i > 0) return waits_directly(t);
  return nanosleep(t, NULL) - i;
}
NOINLINE int waits_with_six(struct timespec* t, long b, long c, long d, long e, long f) {
  sink = (int)(b + c + d + e + f);
  return waits_in_a_chain(t);
}
// A function without a fixed number of arguments, some of them on the stack.
NOINLINE int waits_variadic(struct timespec* t, ...) {
  va_list list;
  va_start(list, t);
  for (int i = 0; i < 8; ++i) sink += va_arg(list, int);
  va_end(list);
  return waits_directly(t);
}
NOINLINE void* waits_in_a_thread(void* t) {
  sink = 7;
  return (void*)(long)waits_directly(t);
}

// Arguments on the stack: the jump stays.
struct Big {
  long v[9];
};
NOINLINE long sum_of_seven(long a, long b, long c, long d, long e, long f, long g) {
  sink = 8;
  return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7;
}
NOINLINE long seven(long a, long b, long c, long d, long e, long f, long g) {
  sink = 9;
  return sum_of_seven(g, f, e, d, c, b, a);
}
NOINLINE long sum_of_big(struct Big b) {
  sink = 10;
  long s = 0;
  for (int i = 0; i < 9; ++i) s = s * 3 + b.v[i];
  return s;
}
NOINLINE long big(struct Big b) {
  sink = 11;
  return sum_of_big(b);
}
NOINLINE int prints(const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int n = vprintf(format, list);
  va_end(list);
  return n;
}

// Results in all registers that have some.
struct Pair {
  long a, b;
};
struct Mixed {
  double a;
  long b;
};
NOINLINE struct Pair pair(long a) {
  sink = 12;
  return (struct Pair){a, a * 3};
}
NOINLINE struct Pair by_pair(long a) {
  sink = 13;
  return pair(a + 1);
}
NOINLINE struct Mixed mixed(long a) {
  sink = 14;
  return (struct Mixed){(double)a / 2, a};
}
NOINLINE struct Mixed by_mixed(long a) {
  sink = 15;
  return mixed(a + 1);
}
NOINLINE long double extended(long double a) {
  sink = 16;
  return a * 3;
}
NOINLINE double complex complicated(double complex a) {
  sink = 17;
  return a * a;
}
NOINLINE double complex by_complicated(double complex a) {
  sink = 18;
  return complicated(a);
}
NOINLINE struct Big large(long a) {
  sink = 19;
  struct Big b;
  for (int i = 0; i < 9; ++i) b.v[i] = a * i;
  return b;
}
NOINLINE struct Big by_large(long a) {
  sink = 20;
  return large(a + 1);
}
NOINLINE __int128 wide(__int128 a) {
  sink = 21;
  return a * 5;
}
NOINLINE __int128 by_wide(__int128 a) {
  sink = 22;
  return wide(a + 1);
}

// Cycles: the stack must not grow.
typedef long Step(long, long);
NOINLINE long step_a(long n, long s);
NOINLINE long step_b(long n, long s);
NOINLINE long step_c(long n, long s);
Step* volatile steps[] = {step_a, step_b, step_c};
char* lowest;
NOINLINE void look_at_stack(void) {
  char here;
  if (lowest == NULL || &here < lowest) lowest = &here;
}
NOINLINE long step_a(long n, long s) {
  if (n == 0) {
    look_at_stack();
    return s;
  }
  return steps[s % 2 + 1](n - 1, s + 1);
}
NOINLINE long step_b(long n, long s) {
  if (n == 0) {
    look_at_stack();
    return s;
  }
  return steps[s % 3](n - 1, s + 2);
}
NOINLINE long step_c(long n, long s) {
  if (n == 0) {
    look_at_stack();
    return s;
  }
  return steps[s % 2](n - 1, s + 3);
}

// Recursion with a tail call at each level.
NOINLINE long recurses(long n);
NOINLINE long goes_on(long n) {
  sink = 23;
  return recurses(n - 1);
}
NOINLINE long recurses(long n) {
  if (n == 0) {
    look_at_stack();
    return 0;
  }
  long r = goes_on(n);
  sink = (int)r;
  return r + 1;
}

// Ways out over the frames.
jmp_buf place;
NOINLINE int jumps(int n) {
  sink = n;
  longjmp(place, n + 1);
}
NOINLINE int is_jumped_over(int n) {
  sink = n;
  volatile int (*f)(int) = (volatile int (*)(int))jumps;
  return f(n);
}
NOINLINE int comes_back(int n) {
  const int r = setjmp(place);
  if (r == 0) return is_jumped_over(n) + sink;
  return r;
}

NOINLINE int finds_main(int n) {
  void* frames[64];
  const int count = backtrace(frames, 64);
  for (int i = 0; i < count; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) && info.dli_sname && strcmp(info.dli_sname, "main") == 0) return n;
  }
  return -count;
}
NOINLINE int asks_for_stack(int n) {
  sink = n;
  return finds_main(n + 1);
}

NOINLINE void* next_symbol(const char* name) {
  sink = 24;
  return dlsym(RTLD_NEXT, name);
}
NOINLINE int forks(void) {
  sink = 25;
  return fork();
}

int compare(const void* a, const void* b) {
  sink = 26;
  return *(const int*)a - *(const int*)b;
}
NOINLINE void sorts(int* v, long n) {
  sink = 27;
  qsort(v, (size_t)n, sizeof *v, compare);
}

ucontext_t main_context, other_context;
NOINLINE int swaps(void) {
  sink = 28;
  return swapcontext(&main_context, &other_context);
}
NOINLINE int swaps_back(void) {
  sink = 29;
  return swapcontext(&other_context, &main_context);
}
void other(void) {
  for (;;) swaps_back();
}

volatile int handled;
NOINLINE int in_handler(int n) {
  sink = n;
  return waits_directly(&two_ms);
}
void handler(int number) { handled += number + in_handler(number); }

int main(int argc, char** argv) {
  struct Waiter waiter = {waits_for_a_member, two_ms};
  int r = waits_directly(&two_ms) + waits_in_a_chain(&two_ms) + waits_in_a_longer_chain(&two_ms) +
          waits_by_pointer(&two_ms);
  r += waits_by_member(&waiter) + waits_on_one_branch(1, &two_ms) + waits_on_one_branch(-1, &two_ms);
  r += waits_with_six(&two_ms, 2, 3, 4, 5, 6) + waits_variadic(&two_ms, 1, 2, 3, 4, 5, 6, 7, 8);
  pthread_t thread;
  pthread_create(&thread, NULL, waits_in_a_thread, &two_ms);
  pthread_join(thread, NULL);
  printf("waited %d\n", r);

  struct Big b = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
  printf("%ld %ld\n", seven(1, 2, 3, 4, 5, 6, 7), big(b));
  prints("%d %s %g %d %d %d %d %d %g\n", 1, "two", 3.0, 4, 5, 6, 7, 8, 9.0);
  const struct Pair p = by_pair(4);
  const struct Mixed m = by_mixed(4);
  const double complex c = by_complicated(1 + 2 * I);
  const struct Big l = by_large(6);
  printf("%ld %ld %g %ld %Lg %g %g %ld %ld\n", p.a, p.b, m.a, m.b, extended(1.5L), creal(c), cimag(c), l.v[8],
         (long)by_wide(7));

  lowest = NULL;
  const long steps_sum = step_a(300000, 0);
  const long of_steps = (char*)&r - lowest;
  lowest = NULL;
  const long depth = recurses(20000);
  printf("%ld %ld\n", steps_sum, depth);
  if (argc > 1) fprintf(stderr, "stack %ld %ld\n", of_steps, (char*)&r - lowest);
  int jumped = 0;
  for (int i = 0; i < 300; ++i) jumped += comes_back(i);
  printf("%d %d\n", jumped, asks_for_stack(41));
  printf("%d\n", next_symbol("printf") == dlsym(RTLD_NEXT, "printf"));
  fflush(stdout);
  const int child = forks();
  if (child == 0) {
    printf("child\n");
    return 0;
  }
  int status = 0;
  waitpid(child, &status, 0);
  int v[] = {3, 1, 2};
  sorts(v, 3);
  getcontext(&other_context);
  static char stack[65536];
  other_context.uc_stack.ss_sp = stack;
  other_context.uc_stack.ss_size = sizeof stack;
  makecontext(&other_context, other, 0);
  int swapped = 0;
  for (int i = 0; i < 10; ++i) swapped += swaps();
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  printf("%d %d%d%d %d %d\n", status, v[0], v[1], v[2], swapped, handled);
  r = waits_in_a_longer_chain(&two_ms);
  (void)argv;
  return r;
}
