// A program that writes to a page of its own code again and again, where functions are called often, as in the pages
// before and behind it.
// Prints "right N" when standard input ends: it may write there, and what it has written runs.
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OFTEN(n, at)                                                               \
  __attribute__((noinline, noclone, aligned(at))) unsigned often_##n(unsigned x) { \
    for (unsigned i = 0; i < (x & 3); ++i) x = x * 2654435761u + (n);              \
    return x ^ x >> 16;                                                            \
  }
OFTEN(1, 4096)
OFTEN(2, 4096)

unsigned own_number(void);
__asm__(
    ".text\n"
    ".balign 4096\n"
    ".type own_number, @function\n"
    "own_number: mov $1, %eax\n"
    "ret\n"
    ".size own_number, . - own_number");

OFTEN(3, 16)
OFTEN(4, 4096)
OFTEN(5, 4096)

int main(void) {
  unsigned char* own = (unsigned char*)own_number;
  if (mprotect(own, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return 2;
  puts("ready");
  fflush(stdout);
  unsigned x = 1;
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  unsigned rounds = 0;
  for (; poll(&input, 1, 0) == 0; ++rounds) {
    for (unsigned i = 0; i < 100000; ++i) x += often_1(x) + often_2(x) + often_3(x) + often_4(x) + often_5(x);
    memcpy(own + 1, &rounds, sizeof rounds);
    if (own_number() != rounds) return 3;
  }
  printf("right %u\n", rounds + (x == 0));
  return 0;
}
