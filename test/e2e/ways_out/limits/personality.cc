// With libstdc++ inside, the personality routine is one of the program's functions.
#include <cstdio>

namespace {

[[gnu::noipa]] int throws(int n) {
  if (n == 0) throw n;
  return throws(n - 1) + 1;
}

[[gnu::noipa]] int catches(int n) {
  try {
    return throws(n);
  } catch (int thrown) {
    return thrown;
  }
}

}  // namespace

int main() {
  int sum = 0;
  for (int i = 0; i < 5; ++i) sum += catches(i);
  std::printf("%d\n", sum);
}
