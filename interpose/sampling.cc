// SPDX-License-Identifier: MIT
#include "interpose/sampling.h"

namespace karst::interpose {
namespace {

// The natural logarithm of a number from 0 to 1, to some 8 digits. libm would be another library in the program.
double logarithm(double number) {
  int exponent = 0;
  for (; number < 0.70710678; number *= 2) --exponent;
  const double s = (number - 1) / (number + 1);  // ln x = 2 artanh((x - 1) / (x + 1))
  const double square = s * s;
  const double series = 1 + square * (1.0 / 3 + square * (1.0 / 5 + square * (1.0 / 7 + square / 9)));
  return 2 * s * series + exponent * 0.69314718055994531;
}

}  // namespace

// The caller's stack may not be aligned.
__attribute__((force_align_arg_pointer)) void Countdown::draw(uint64_t mean) {
  const double uniform = (static_cast<double>(next_random() >> 11) + 0.5) / 9007199254740992.0;  // 2^53
  left = 1 + static_cast<uint64_t>(-logarithm(uniform) * static_cast<double>(mean));
}

}  // namespace karst::interpose
