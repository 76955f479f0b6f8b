// Goes through all conditional tail calls of conditional_tails.S with all values of the six arithmetic flags: each must
// be taken when its condition holds, and hand on the flags.
//   conditional_tails              once
//   conditional_tails THREADS      says "ready" and goes round in so many threads until standard input ends
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct tail {
  uint64_t (*function)(uint64_t flags);
  uint64_t condition;
};
extern const struct tail karst_tails[];

enum { CF = 1, PF = 4, AF = 0x10, ZF = 0x40, SF = 0x80, OF = 0x800, ALL = CF | PF | AF | ZF | SF | OF };
static const uint64_t taken_bit = (uint64_t)1 << 63;
static atomic_int stop;

static int holds(uint64_t condition, uint64_t flags) {
  const int less = !(flags & SF) != !(flags & OF);
  const int values[] = {!!(flags & OF), !!(flags & CF), !!(flags & ZF), !!(flags & (CF | ZF)),
                        !!(flags & SF), !!(flags & PF), less,           less || (flags & ZF)};
  return values[condition / 2] != (int)(condition % 2);
}

static int all_are_right(void) {
  static const uint64_t bits[] = {CF, PF, AF, ZF, SF, OF};
  for (const struct tail* t = karst_tails; t->function; ++t) {
    for (int i = 0; i < 64; ++i) {
      uint64_t flags = 2;
      for (int bit = 0; bit < 6; ++bit)
        if (i >> bit & 1) flags |= bits[bit];
      const uint64_t got = t->function(flags);
      if ((got & ALL) == (flags & ALL) && !(got & taken_bit) == !holds(t->condition, flags)) continue;
      printf("condition %d: flags %#x became %#x, %s\n", (int)t->condition, (unsigned)(flags & ALL),
             (unsigned)(got & ALL), got & taken_bit ? "taken" : "not taken");
      return 0;
    }
  }
  return 1;
}

static void* goes_round(void* unused) {
  (void)unused;
  while (!stop)
    if (!all_are_right()) exit(1);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    const int count = atoi(argv[1]);
    pthread_t threads[64];
    for (int i = 0; i < count; ++i) pthread_create(&threads[i], NULL, goes_round, NULL);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    stop = 1;
    for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  } else if (!all_are_right()) {
    return 1;
  }
  puts("right");
  return 0;
}
