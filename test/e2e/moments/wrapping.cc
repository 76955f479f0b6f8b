// Calls that would have been overwritten a thousand times when the program ends.
volatile int g_sink;

__attribute__((noinline)) void leaf(int i) { g_sink = i; }
__attribute__((noinline)) void before_it(int i) { leaf(i); }
__attribute__((noinline)) void rare(int i) { g_sink = i; }
__attribute__((noinline)) void after_it(int i) { leaf(i); }

int main() {
  before_it(1);
  rare(2);
  // Longer than it takes to notice.
  for (int i = 0; i < 20'000'000; ++i) after_it(i);
}
