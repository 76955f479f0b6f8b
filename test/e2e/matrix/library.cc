#include "library.h"

namespace matrix {
namespace {
int g_loaded;
NOINLINE int load_settings(int x) {
  asm volatile("" ::: "memory");
  return x + 1;
}
__attribute__((constructor)) NOINLINE void library_constructor() { g_loaded = load_settings(g_loaded); }
NOINLINE void flush_log() { asm volatile("" ::: "memory"); }
__attribute__((destructor)) NOINLINE void library_destructor() {
  flush_log();
  asm volatile("" ::: "memory");
}
}  // namespace

NOINLINE Shape::Shape() { asm volatile("" ::: "memory"); }
NOINLINE Named::Named() { asm volatile("" ::: "memory"); }
NOINLINE Shape::~Shape() { asm volatile("" ::: "memory"); }
NOINLINE Named::~Named() { asm volatile("" ::: "memory"); }
NOINLINE Square::Square(int side) : side_(side) { asm volatile("" ::: "memory"); }
NOINLINE Square::~Square() { asm volatile("" ::: "memory"); }
NOINLINE int Square::area() const {
  asm volatile("" ::: "memory");
  return side_ * side_;
}
NOINLINE int Square::name_length(int least) const {
  asm volatile("" ::: "memory");
  return least > side_ ? least : side_;
}
NOINLINE int measure(const Shape& shape) { return shape.area() + g_loaded; }
NOINLINE int count(const Named& named, int least) {
  return least == 0 ? named.name_length(0) : count(named, least - 1) + named.name_length(least);
}
NOINLINE int call_back(int (*function)(int), int argument) { return function(argument) + 1; }
}  // namespace matrix
