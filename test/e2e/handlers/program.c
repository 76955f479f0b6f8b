/* Calls functions of every kind of argument and result, and says what came of it. With an argument it waits for a byte
 * on its standard input before each further round; with a library's path it calls that library's function. */
#include <complex.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

typedef float vector __attribute__((vector_size(16)));
typedef double wide __attribute__((vector_size(32)));
struct both {
  double real;
  long whole;
};
enum colour { RED, GREEN, BLUE = 7 };

NOINLINE double many(double a, double b, double c, double d, double e, double f, double g, double h, double i, long j,
                     long k, long l, long m, long n, long o, long p) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + j + 2 * k + 3 * l + 4 * m + 5 * n + 6 * o +
         7 * p;
}
NOINLINE long double extended(long double x) { return x * 3 + 1; }
NOINLINE long double _Complex extended_pair(long double x) { return x + 2 * x * I; }
NOINLINE double _Complex pair(double x) { return x + 3 * x * I; }
NOINLINE struct both mixed(struct both in) { return (struct both){in.real * 2, in.whole * 3}; }
NOINLINE __int128 big(__int128 x) { return x * 5 + 1; }
NOINLINE vector add(vector a, vector b) { return a + b; }
__attribute__((target("avx"))) NOINLINE static void widen(wide* to, const wide* from);
__attribute__((target("avx"))) NOINLINE wide add_wide(wide a, wide b) { return a * 2.0 + b; }
__attribute__((target("avx"))) static void widen(wide* to, const wide* from) { *to = add_wide(*from, *from * 0.5); }
NOINLINE double sum(int count, ...) {
  va_list list;
  va_start(list, count);
  double all = 0;
  for (int i = 0; i < count; ++i) all += va_arg(list, double);
  va_end(list);
  return all;
}
NOINLINE int fails(int x) {
  errno = x;
  return -1;
}
NOINLINE int last(int x) { return x ^ 5; }
NOINLINE int tail(int x) { return last(x + 1); }
NOINLINE int nested(int depth) { return depth == 0 ? 1 : nested(depth - 1) + last(depth); }
NOINLINE int shown(int number, const char* text, double real, enum colour colour, const void* bad) {
  return number + (int)strlen(text) + (int)real + (int)colour + (bad != 0);
}

static pthread_barrier_t g_ready;
static int g_cleaned, g_rounds;
static void clean(void* unused) {
  (void)unused;
  ++g_cleaned;
}
/* Is cancelled where it says so, and nowhere else. */
NOINLINE static void* cancelled(void* unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
  pthread_cleanup_push(clean, NULL);
  pthread_barrier_wait(&g_ready);
  pthread_barrier_wait(&g_ready); /* it is cancelled by now */
  for (int i = 0; i < 100; ++i) g_rounds += last(i) == (i ^ 5);
  pthread_testcancel();
  pthread_cleanup_pop(0);
  return unused;
}

static void* work(void* argument) {
  long* result = argument;
  for (int i = 0; i < 2000; ++i) *result += last(i) + tail(i);
  return NULL;
}

static void calls(int round) {
  const double x = round + 0.25;
  printf("%.3f\n", many(x, 1, 2, 3, 4, 5, 6, 7, 8, round, 2, 3, 4, 5, 6, 7));
  const long double _Complex e = extended_pair(x);
  const double _Complex p = pair(x);
  const struct both m = mixed((struct both){x, round});
  const __int128 b = big(((__int128)round << 64) + 3);
  const vector v = add((vector){1, 2, 3, (float)x}, (vector){4, 5, 6, 7});
  printf("%.3Lf %.3Lf %.3Lf %.3f %.3f\n", extended(x), creall(e), cimagl(e), creal(p), cimag(p));
  printf("%.3f %ld %lx %lx %.3f %.3f\n", m.real, m.whole, (long)(b >> 64), (long)b, v[0], v[3]);
  printf("%.3f\n", sum(5, x, 2.5, 3.5, 4.5, 5.5));
  if (__builtin_cpu_supports("avx")) {
    wide in = {x, 2, 3, 4}, out;
    widen(&out, &in);
    printf("%.3f %.3f\n", out[0], out[3]);
  }
  errno = 0;
  fails(34);
  printf("%d %d %d\n", errno, tail(round), nested(5));
  printf("%d\n", shown(round, "a text that is read", -2.5, BLUE, (const void*)16));
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* library = argc > 1 && strchr(argv[1], '/') ? argv[1] : NULL;
  calls(0);
  pthread_t threads[2], victim;
  long results[2] = {0, 0};
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, &results[i]);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  pthread_barrier_init(&g_ready, NULL, 2);
  pthread_create(&victim, NULL, cancelled, NULL);
  pthread_barrier_wait(&g_ready);
  pthread_cancel(victim);
  pthread_barrier_wait(&g_ready);
  pthread_join(victim, NULL);
  printf("%ld %ld; %d cleaned after %d\n", results[0], results[1], g_cleaned, g_rounds);
  if (library) {
    void* opened = dlopen(library, RTLD_NOW);
    int (*function)(int) = opened ? (int (*)(int))dlsym(opened, "late_function") : NULL;
    printf("late: %d\n", function ? function(3) + function(4) : -1);
  } else if (argc > 1) {
    for (int round = 1; getchar() != EOF; ++round) calls(round);
  }
  return 0;
}
