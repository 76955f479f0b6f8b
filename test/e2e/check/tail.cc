// Requests of one kind are slow: every tenth, of the kind 7.
#include <unistd.h>

namespace {

volatile unsigned long sink = 0;

}  // namespace

__attribute__((noinline)) void answer(int id, int kind) {
  for (int i = 0; i < 1000 + id; ++i) sink = sink + static_cast<unsigned long>(i);
  if (kind == 7) usleep(1000);
}

int main() {
  for (int id = 0; id < 200; ++id) answer(id, id % 10 == 3 ? 7 : id % 5);
  return 0;
}
