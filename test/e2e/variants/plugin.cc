int plugged(int n) { return n; }
extern "C" int run() {
  int sum = 0;
  for (int i = 0; i < 11; ++i) sum += plugged(i);
  return sum;
}
