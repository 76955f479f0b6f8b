// Calls itself 2000 times deep.
__attribute__((noinline)) int leaf(int n) {
  asm volatile("" : "+r"(n));
  return n;
}

__attribute__((noinline)) int down(int n) {
  int of = n == 0 ? leaf(n) : down(n - 1);
  asm volatile("" : "+r"(of));
  return of + 1;
}

int main() { return down(2000) == 0; }
