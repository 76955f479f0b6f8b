#include <stdio.h>

int size_of(const unsigned char* value);

int main(void) {
  long sum = 0;
  for (int round = 0; round < 10; ++round)
    for (int i = 0; i < 256; ++i) {
      const unsigned char value = (unsigned char)i;
      sum = sum * 31 + size_of(&value);
    }
  printf("%lx\n", sum);
  return 0;
}
