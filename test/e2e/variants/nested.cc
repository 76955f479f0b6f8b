// Calls within calls, some of which stay whatever they take: an exception leaves them.
#include <cstdlib>

void leaf() { asm volatile(""); }
void only_leaves() {
  for (int i = 0; i < 3; ++i) leaf();
}
void leave(int depth) {
  leaf();
  if (depth == 0) throw 1;
  leave(depth - 1);
  leaf();
}
void keeps() {
  only_leaves();
  try {
    leave(2);
  } catch (int) {
  }
  only_leaves();
}
int main(int, char** argv) {
  const int rounds = std::atoi(argv[1]);
  for (int i = 0; i < rounds; ++i) {
    only_leaves();
    keeps();
  }
}
