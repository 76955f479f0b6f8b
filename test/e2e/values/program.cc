#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>
enum class Color { RED, GREEN = 5, BLUE = -3 };
enum Flags { kNone, kOne };
struct Point {
  int x;
  int y;
};
struct Big {
  long a, b, c;
};
struct Mixed {
  double d;
  long n;
};
#define NI __attribute__((noinline, noclone))
NI int ints(signed char a, unsigned char b, short c, unsigned d, long e, unsigned long long f, int g, int h) {
  asm volatile("" ::: "memory");
  return a + b + c + d + e + f + g + h;
}
NI double floats(float a, double b, int n) {
  asm volatile("" ::: "memory");
  return a + b + n;
}
NI bool texts(const char* a, const std::string& b, std::string c, std::string_view d) {
  asm volatile("" ::: "memory");
  return a != nullptr && b.size() + c.size() + d.size() > 3;
}
NI Color enums(Color c, Flags f, bool b, char ch) {
  asm volatile("" ::: "memory");
  return b ? Color::BLUE : c;
}
NI Point points(Point p, const Point& q, Big big, Mixed m) {
  asm volatile("" ::: "memory");
  return {p.x + q.x, p.y + int(big.c) + int(m.n)};
}
NI std::string joins(const std::vector<int>& v, void* p, std::vector<Point> w) {
  asm volatile("" ::: "memory");
  return std::string(v.size() + w.size(), 'x');
}
NI Big bigs(int n) {
  asm volatile("" ::: "memory");
  return {n, n + 1, n + 2};
}
struct Thing {
  int k = 3;
  NI int method(int n) const {
    asm volatile("" ::: "memory");
    return n + k;
  }
};
NI const char* name(int n) {
  asm volatile("" ::: "memory");
  return n ? "a name" : nullptr;
}
NI int bad(const char* p, const std::string* s) {
  asm volatile("" ::: "memory");
  return p != nullptr;
}
NI int recurse(int n) {
  asm volatile("" ::: "memory");
  return n == 0 ? 0 : 1 + recurse(n - 1);
}
// Of kinds that are not shown: what comes behind them must be right.
struct Guarded {
  int k;
  Guarded(int n) : k(n) {}
  Guarded(const Guarded& o) : k(o.k) {}
  ~Guarded() { k = 0; }
};
struct Bytes {
  char b[12];
};
struct Bits {
  unsigned a : 3;
  unsigned b : 30;
};
struct Empty {};
typedef float Four __attribute__((vector_size(16)));
NI int behind(Guarded g, int a, Bytes y, int b, Bits t, int c, long double d, int e, Empty, int f, Four v, double h,
              __int128 w, int last) {
  asm volatile("" ::: "memory");
  return g.k + a + y.b[0] + b + t.a + c + int(d) + e + f + int(v[0]) + int(h) + int(w) + last;
}
int main() {
  std::printf("%d\n", behind(Guarded(1), 2, Bytes{{3}}, 4, Bits{5, 6}, 7, 8.0L, 9, Empty(), 10, Four{11, 0, 0, 0}, 12.5,
                             13, 14));
  std::printf("%d\n", ints(-1, 200, -300, 4000000000u, -5, 1ull << 40, 7, 8));
  std::printf("%f\n", floats(1.5f, -2.25, 3));
  std::string s = "it's \"b\"\n", t(200, 'c');
  std::printf("%d\n", texts("hello", s, t, std::string_view("a view")));
  std::printf("%d\n", int(enums(Color::GREEN, kOne, true, 'z')));
  Point q{3, 4};
  Point r = points({1, 2}, q, {10, 20, 30}, {2.5, 6});
  std::printf("%d %d\n", r.x, r.y);
  std::printf("%s\n", joins({1, 2, 3}, &s, {q, q}).c_str());
  std::printf("%ld\n", bigs(7).c);
  Thing thing;
  std::printf("%d\n", thing.method(9));
  std::printf("%s %d\n", name(1), name(0) == nullptr);
  std::printf("%d\n", bad(reinterpret_cast<const char*>(16), nullptr));
  std::printf("%d\n", recurse(3));
}
