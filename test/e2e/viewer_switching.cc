// What the viewer's tests look at: slow calls that are kept, and a while in which the program itself switched tracing
// off.
#include <karst/karst.h>
#include <time.h>

namespace shop {
__attribute__((noinline)) void rest(int milliseconds) {
  timespec time{0, milliseconds * 1'000'000L};
  ::nanosleep(&time, nullptr);
}

__attribute__((noinline)) int serve(int number) {
  if (number == 17) rest(20);
  asm volatile("" ::: "memory");  // no tail call
  return number + 1;
}
}  // namespace shop

__attribute__((noinline)) void unseen() {
  karst_disable();
  shop::rest(40);
  karst_enable();
}

int main() {
  int sum = 0;
  for (int i = 0; i < 40; ++i) sum += shop::serve(i);
  unseen();
  for (int i = 0; i < 40; ++i) sum += shop::serve(i + 100);
  return sum == 0 ? 1 : 0;
}
