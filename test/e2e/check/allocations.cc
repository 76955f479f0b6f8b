// Lines are drawn by a function that takes a buffer for each word, and frees it.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kLines = 2000, kWords = 10;
volatile unsigned sink = 0;

}  // namespace

__attribute__((noinline)) void draw_line(unsigned line) {
  for (unsigned word = 0; word < kWords; ++word) {
    char* const buffer = static_cast<char*>(std::malloc(100));
    std::memset(buffer, static_cast<int>(line + word), 100);
    sink = sink + static_cast<unsigned char>(buffer[word]);
    std::free(buffer);
  }
}

int main() {
  for (unsigned line = 0; line < kLines; ++line) draw_line(line);
  return 0;
}
