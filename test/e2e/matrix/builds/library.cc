#include "library.h"

namespace builds {
namespace {

int g_loaded;

STEADY int load(int x) {
  asm volatile("" : "+r"(x));
  return x + 1;
}
__attribute__((constructor)) STEADY void library_constructor() { g_loaded = load(g_loaded); }
__attribute__((destructor)) STEADY void library_destructor() { g_loaded = load(g_loaded); }

}  // namespace

Shape::Shape() { asm volatile("" ::: "memory"); }
Shape::~Shape() { asm volatile("" ::: "memory"); }
Square::Square(int side) : side_(side) { asm volatile("" ::: "memory"); }
Square::~Square() { asm volatile("" ::: "memory"); }
int Square::area() const {
  asm volatile("" ::: "memory");
  return side_ * side_;
}

int measure(const Shape& shape) {
  const int area = shape.area();
  return twice(area) + g_loaded;
}
int call_back(int (*function)(int), int argument) { return function(argument) + 1; }

}  // namespace builds
