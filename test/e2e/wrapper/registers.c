// Calls in which registers are live at a sled that ordinary calls leave dead. Prints what it computed: the output of a
// traced run must be that of a plain build. Also built at -O0, so every value crosses each sled in its register.
#include <complex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#ifdef __clang__
#define UNTRACED __attribute__((noinline, xray_never_instrument))
#else
#define UNTRACED __attribute__((no_instrument_function, noinline))
#endif

// al tells a variadic function how many vector registers hold arguments.
NOINLINE static double sum_doubles(int n, ...) {
  va_list list;
  va_start(list, n);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += va_arg(list, double) * (i + 1);
  va_end(list);
  return sum;
}

NOINLINE static void say(const char* format, ...) {
  va_list list;
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
}

#ifndef __clang__  // it has no nested functions
// r10 carries the frame of the outer function.
NOINLINE static int nested(int a, int b) {
  int calls = 0;
  NOINLINE int inner(int x) {
    ++calls;
    return x > 0 ? inner(x - 1) + a * b : calls;
  }
  int (*volatile as_pointer)(int) = inner;  // through a trampoline on the stack
  return inner(3) + as_pointer(2) * 100 + calls * 10000;
}
#endif

// rax:rdx, xmm0:xmm1, rax:xmm0, st0, st0:st1, and hidden pointers.
struct two_longs {
  long a, b;
};
struct two_doubles {
  double a, b;
};
struct mixed {
  long a;
  double b;
};
struct large {
  long a[9];
};
NOINLINE static struct two_longs return_longs(long a, long b) { return (struct two_longs){a + 1, b + 2}; }
NOINLINE static struct two_doubles return_doubles(double a, double b) { return (struct two_doubles){a + 1, b + 2}; }
NOINLINE static struct mixed return_mixed(long a, double b) { return (struct mixed){a + 1, b + 2}; }
NOINLINE static struct large return_large(long a) {
  struct large l;
  for (int i = 0; i < 9; ++i) l.a[i] = a * i;
  return l;
}
NOINLINE static struct large forward_large(long a) { return return_large(a + 1); }
NOINLINE static __int128 return_int128(__int128 a, long b) { return a * b + ((__int128)b << 70); }
NOINLINE static long double return_x87(long double a, double b) { return a / b; }
NOINLINE static _Complex double return_complex(_Complex double a) { return a * a; }
NOINLINE static _Complex long double return_complex_x87(_Complex long double a, long double b) { return a * a + b; }
NOINLINE static _Complex float return_complex_float(_Complex float a) { return a * a; }

// Tail calls through a register and through memory; the target is live in a register at the exit sled.
typedef long (*step)(long, long, long, long, long, long);
NOINLINE static long last(long a, long b, long c, long d, long e, long f) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f;
}
NOINLINE static long tail_by_register(step* table, long i, long a, long b, long c, long d) {
  return table[i](a, b, c, d, i, 7);
}
static step volatile g_step = last;
NOINLINE static long tail_by_memory(long a, long b, long c, long d, long e, long f) { return g_step(f, e, d, c, b, a); }
NOINLINE static double tail_variadic(double x) { return sum_doubles(3, x, x + 1, x + 2); }

NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, long h, double i, double j, double k,
                          double l, double m, double n, double o, double p, double q, char r) {
  return (long)(a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10 + k * 11 + l * 12 + m * 13 +
                n * 14 + o * 15 + p * 16 + q * 17 + r * 18);
}

// The thread's first event, with every argument register live: the hook joins the thread here.
NOINLINE static double first_event(double a, double b, double c, double d, double e, double f, double g, double h,
                                   int i, long j, long k, long l, long m, long n) {
  __asm__ volatile("" : "+x"(a));  // or clang works it out when it compiles
  return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 +
         (double)(i + 2 * j + 3 * k + 4 * l + 5 * m + 6 * n);
}
UNTRACED static void* first_with_doubles(void* result) {
  *(double*)result = first_event(1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 1, 2, 3, 4, 5, 6);
  return NULL;
}
UNTRACED static void* first_is_variadic(void* result) {
  *(double*)result = sum_doubles(8, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5);
  return NULL;
}
// A thread whose first event is an exit of long double cannot be made without its enter; but a join at an x87-heavy
// entry can: the x87 stack and control word must survive it.
NOINLINE static long double x87_argument(long double a) { return a * 3; }
UNTRACED static void* first_is_x87(void* result) {
  unsigned short control = 0, kept = 0x0c7f;
  __asm__ volatile("fnstcw %0" : "=m"(control));
  __asm__ volatile("fldcw %0" : : "m"(kept));
  const long double x = x87_argument(1.0L / 3);
  unsigned short now = 0;
  __asm__ volatile("fnstcw %0" : "=m"(now));
  __asm__ volatile("fldcw %0" : : "m"(control));
  *(double*)result = now == kept ? (double)x : -1;
  return NULL;
}

int main(void) {
  printf("%.17g\n", sum_doubles(8, 1.25, 2.25, 3.25, 4.25, 5.25, 6.25, 7.25, 8.25));
  printf("%.17g\n", sum_doubles(10, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.));
  say("%d %.3f %s %.3f %c\n", 7, 2.5, "text", 3.25, 'x');
  say("no doubles\n");
#ifndef __clang__
  printf("%d\n", nested(6, 7));
#endif
  const struct two_longs longs = return_longs(1L << 40, -5);
  printf("%ld %ld\n", longs.a, longs.b);
  const struct two_doubles doubles = return_doubles(0.1, 0.2);
  printf("%.17g %.17g\n", doubles.a, doubles.b);
  const struct mixed mixed = return_mixed(3, 0.3);
  printf("%ld %.17g\n", mixed.a, mixed.b);
  const struct large large = forward_large(11);
  for (int i = 0; i < 9; ++i) printf("%ld ", large.a[i]);
  const __int128 wide = return_int128(((__int128)1 << 80) + 12345, 77);
  printf("\n%lx %lx\n", (unsigned long)(wide >> 64), (unsigned long)wide);
  printf("%.20Lg\n", return_x87(1, 3));
  const _Complex double c = return_complex(1.5 + 2.5 * I);
  const _Complex long double cx = return_complex_x87(1.25L + 3.5L * I, 0.125L);
  const _Complex float cf = return_complex_float(0.5f + 0.25f * I);
  printf("%.17g %.17g %.20Lg %.20Lg %g %g\n", creal(c), cimag(c), creall(cx), cimagl(cx), (double)crealf(cf),
         (double)cimagf(cf));
  step table[3] = {last, tail_by_memory, last};
  for (long i = 0; i < 3; ++i) printf("%ld ", tail_by_register(table, i, 1, 2, 3, 4));
  printf("%ld %.17g\n", tail_by_memory(1, 2, 3, 4, 5, 6), tail_variadic(0.5));
  printf("%ld\n", many(1, 2, 3, 4, 5, 6, 7, 8, .5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 'r'));
  void* (*const starts[])(void*) = {first_with_doubles, first_is_variadic, first_is_x87};
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    double result = 0;
    pthread_create(&thread, NULL, starts[i], &result);
    pthread_join(thread, NULL);
    printf("%.17g\n", result);
  }
  return 0;
}
