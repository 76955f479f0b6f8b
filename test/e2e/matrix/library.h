// The library of the matrix, shared or within the program: its own traced functions, a constructor and a destructor of
// its own.
#pragma once
#define NOINLINE __attribute__((noinline, noclone))

namespace matrix {
class Shape {
 public:
  NOINLINE Shape();
  NOINLINE virtual ~Shape();
  virtual int area() const = 0;
};
class Named {
 public:
  NOINLINE Named();
  NOINLINE virtual ~Named();
  virtual int name_length(int least) const = 0;
};
/// Called by way of `Named`, name_length() goes through a thunk.
class Square : public Shape, public Named {
 public:
  NOINLINE explicit Square(int side);
  NOINLINE ~Square() override;
  NOINLINE int area() const override;
  NOINLINE int name_length(int least) const override;

 private:
  int side_;
};
int measure(const Shape& shape);
int count(const Named& named, int least);
int call_back(int (*function)(int), int argument);
}  // namespace matrix
