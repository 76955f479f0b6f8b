// Takes and gives back memory by operator new when its standard input asks for it.
#include <cstdio>

struct Large {
  char bytes[100];
};
Large* volatile g_kept;

__attribute__((noinline)) void make_all() {
  for (int i = 0; i < 10; ++i) {
    g_kept = new Large;
    delete g_kept;
    g_kept = new Large[2];
    delete[] g_kept;
    g_kept = new Large;
  }
}

int main() {
  std::puts("ready");
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    make_all();
    std::puts("done");
    std::fflush(stdout);
  }
  std::puts("right");
}
