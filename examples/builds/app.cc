#include <cstdio>

extern "C" int checksum(const char* text);
int vendor_scale(int value);

namespace app {
int step(int n) { return vendor_scale(n) + checksum("karst"); }
}  // namespace app

int main() {
  int sum = 0;
  for (int n = 0; n < 10; ++n) sum += app::step(n);
  std::printf("%d\n", sum);
}
