// What a fuzz target asserts, in every build.
#pragma once
#include <cstdio>
#include <cstdlib>

namespace karst::fuzz {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace karst::fuzz
