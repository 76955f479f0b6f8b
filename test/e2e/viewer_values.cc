// Calls whose arguments and returned values a page shows: long enough to be named in the picture, with texts that would
// do harm in a page that took them for more than texts.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#define NOINLINE __attribute__((noinline, noclone))

namespace {

void rest(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

}  // namespace

enum class Mode { kRead, kWrite };
struct Point {
  int x;
  int y;
};

NOINLINE int open_file(const char* path, Mode mode, int milliseconds) {
  rest(milliseconds);
  return path[0] + static_cast<int>(mode);
}
NOINLINE const char* hostile(const std::string& text) {
  rest(5);
  return text.empty() ? nullptr : "<script>window.hacked = 2</script>\xe2\x80\xae&amp;\xc2\x9b";
}
NOINLINE bool wide(const std::string& text) {
  rest(5);
  return text.empty();
}
NOINLINE void quiet() { rest(1); }
NOINLINE Point put_point(long count) {
  rest(5);
  return {static_cast<int>(count), -1};
}
NOINLINE void many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j) {
  rest(5);
  std::printf("%d\n", a + b + c + d + e + f + g + h + i + j);
}

int main() {
  int sum = open_file("/etc/passwd", Mode::kRead, 40);
  for (int i = 0; i < 12; ++i) sum += open_file(("/tmp/" + std::to_string(i)).c_str(), Mode::kWrite, 1 + i % 3);
  const char* said = hostile("<img src=x onerror=\"window.hacked = 1\">\x1b[31m\x07\n\xe2\x80\xae");
  std::printf("%d %zu %s\n", sum, sizeof said, wide(std::string(300, 'w')) ? "wide" : "");
  const Point at = put_point(1L << 40 | 5);
  quiet();
  many(1, 2, 3, 4, 5, 6, 7, 8, 9, at.x);
}
