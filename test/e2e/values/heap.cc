// heap N: calls that are given texts on the heap, which the kernel reads.
#include <cstdio>
#include <cstdlib>
#include <string>

__attribute__((noinline)) unsigned long look(const std::string& text) {
  unsigned long sum = text.size();
  asm volatile("" : "+r"(sum));
  return sum;
}
__attribute__((noinline)) unsigned long serve(const std::string& text) { return look(text) + 1; }

int main(int, char** argv) {
  const std::string text(100, 'x');
  unsigned long sum = 0;
  for (int i = std::atoi(argv[1]); i > 0; --i) sum += serve(text);
  std::printf("%lu\n", sum);
}
