// A library of the matrix of builds, and what it shares with its program. Nothing here leaves a compiler a choice that
// the tree of calls would show: no function can be inlined, cloned or merged, and calls stand in statements of their
// own.
#pragma once
#ifdef __clang__
#define STEADY __attribute__((noinline))
#else
#define STEADY __attribute__((noipa))
#endif

namespace builds {

/// In both modules: one definition of the two is run.
template <typename T>
STEADY T twice(T x) {
  asm volatile("" ::: "memory");
  return x + x;
}

class Shape {
 public:
  STEADY Shape();
  STEADY virtual ~Shape();
  virtual int area() const = 0;
};

class Square : public Shape {
 public:
  STEADY explicit Square(int side);
  STEADY ~Square() override;
  STEADY int area() const override;

 private:
  int side_;
};

STEADY int measure(const Shape& shape);
STEADY int call_back(int (*function)(int), int argument);

}  // namespace builds
