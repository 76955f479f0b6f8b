// calls: take() takes memory itself and through part(), gives some of it back, and some later. Prints of each call what
// it took and what was left at its end: `ALLOCATIONS BYTES LEFT LEFT_BYTES`. repeat() takes and frees 100 times, with a
// lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static void* g_kept[64];
static int g_count;

__attribute__((noinline)) void* part(size_t size) { return malloc(size); }

__attribute__((noinline)) void take(int n) {
  void* own = malloc((size_t)n * 10);
  void* kept = part((size_t)n * 100);
  void* grown = realloc(part(5), 50);
  free(own);
  g_kept[g_count++] = kept;
  if (n % 2 != 0)
    free(grown);
  else
    g_kept[g_count++] = grown;
}

__attribute__((noinline)) void give_back(void) {
  while (g_count > 0) free(g_kept[--g_count]);
}

__attribute__((noinline)) void repeat(void) {
  for (int n = 1; n <= 100; ++n) {
    pthread_mutex_lock(&g_lock);
    free(malloc((size_t)n));
    pthread_mutex_unlock(&g_lock);
  }
}

int main(void) {
  static char text[4096];
  setvbuf(stdout, text, _IOFBF, sizeof text);
  for (int n = 1; n <= 20; ++n) {
    take(n);
    const int kept = n % 2 == 0;
    printf("4 %d %d %d\n", n * 110 + 55, 1 + kept, n * 100 + kept * 50);
    if (n % 5 == 0) give_back();
  }
  repeat();
}
