/* One call in two hundred touches memory that is new, by page; argument 1 says which call, argument 2 how many pages.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned g_sum;
NOINLINE static void compute(unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) g_sum = g_sum * 31 + i;
}
NOINLINE static void store(char* memory, unsigned pages) {
  for (unsigned i = 0; i < pages; ++i) memory[i * 4096UL] = 1;
}
NOINLINE static void request(char* memory, unsigned pages) {
  compute(20000);
  store(memory, pages);
  __asm__ volatile(""); /* no tail call: store() is to be within it */
}

int main(int count, char** words) {
  if (count < 3) return 2;
  const int slow = atoi(words[1]);
  const unsigned pages = (unsigned)atoi(words[2]);
  char* memory = mmap(NULL, 4096UL * pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || madvise(memory, 4096UL * pages, MADV_NOHUGEPAGE) != 0) return 1;
  for (int i = 0; i < 200; ++i) request(memory, i == slow ? pages : 1);
  printf("%u\n", g_sum);
  return 0;
}
