// What the viewer's tests look at: a program that serves once for each line that it reads, so that tracing can be
// switched from outside between two of them. The first time it raises an alarm.
#include <stdio.h>
#include <unistd.h>

namespace shop {
__attribute__((noinline)) int price(int number) {
  asm volatile("" ::: "memory");
  return number * 3;
}

__attribute__((noinline)) int serve(int number) {
  const int sum = price(number) + price(number + 1);
  asm volatile("" ::: "memory");  // no tail call
  return sum;
}

__attribute__((noinline)) void alarm(int code) { asm volatile("" ::"r"(code) : "memory"); }
}  // namespace shop

int main() {
  ::printf("%d\n", static_cast<int>(::getpid()));
  ::fflush(stdout);
  int sum = 0;
  char line[16];
  for (int turn = 0; ::fgets(line, sizeof line, stdin) != nullptr; ++turn) {
    for (int i = 0; i < 50; ++i) sum += shop::serve(i);
    if (turn == 0) shop::alarm(7);
    ::puts("served");
    ::fflush(stdout);
  }
  return sum == 1 ? 1 : 0;
}
