// Says what two quantities are, one in whole numbers, and a text that is hard to write.
#include <karst/karst.h>

__attribute__((noinline)) void step(int i) {
  KARST_VALUE("queue length", i - 2);
  KARST_VALUE("load", i * 0.5);
}

int main() {
  for (int i = 0; i < 5; ++i) step(i);
  karst_message("a \"quote\", it's\nb\x01\xff\xc3\xa9;--");
}
