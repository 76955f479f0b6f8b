// Arguments and results in whole vector registers, wider than what fxsave keeps: also at the first event of a thread,
// where the hook calls libc. Built with -mavx2 or -mavx512f.
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>

#ifdef __AVX512F__
typedef __m512d vector;
#define LANES 8
#define SET(x) _mm512_set_pd(x + 7, x + 6, x + 5, x + 4, x + 3, x + 2, x + 1, x)
#define ADD _mm512_add_pd
#else
typedef __m256d vector;
#define LANES 4
#define SET(x) _mm256_set_pd(x + 3, x + 2, x + 1, x)
#define ADD _mm256_add_pd
#endif

__attribute__((noinline)) static vector all(vector a, vector b, vector c, vector d, vector e, vector f, vector g,
                                            vector h) {
  return ADD(ADD(ADD(a, b), ADD(c, d)), ADD(ADD(e, f), ADD(g, h)));
}

__attribute__((noinline, no_instrument_function)) static void* once(void* unused) {
  (void)unused;
  union {
    vector v;
    double lane[LANES];
  } sum;
  sum.v = all(SET(1.5), SET(20.5), SET(300.5), SET(4000.5), SET(5e4), SET(6e5), SET(7e6), SET(8e7));
  for (int i = 0; i < LANES; ++i) printf("%.17g ", sum.lane[i]);
  printf("\n");
  return NULL;
}

int main(void) {
  once(NULL);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, once, NULL);
    pthread_join(thread, NULL);
  }
  return 0;
}
