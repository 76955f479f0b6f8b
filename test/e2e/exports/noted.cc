// Says what two quantities are, one in whole numbers.
#include <karst/karst.h>

__attribute__((noinline)) void step(int i) {
  KARST_VALUE("queue length", i - 2);
  KARST_VALUE("load", i * 0.5);
}

int main() {
  for (int i = 0; i < 5; ++i) step(i);
}
