// SPDX-License-Identifier: MIT
// The compiler may call these by name for copies of structs; these definitions are hidden, so the
// runtime never reaches libc's, whose vector registers belong to the program.
#include "runtime/system/memory.h"

#include "arch/cpu.h"

extern "C" {

__attribute__((visibility("hidden"))) void* memcpy(void* to, const void* from, std::size_t n) {
  karst::runtime::copy(to, from, n);
  return to;
}

__attribute__((visibility("hidden"))) void* memset(void* to, int value, std::size_t n) {
  karst::arch::fill_bytes(to, value, n);
  return to;
}

__attribute__((visibility("hidden"))) int memcmp(const void* a, const void* b, std::size_t n) {
  const auto* x = static_cast<const unsigned char*>(a);
  const auto* y = static_cast<const unsigned char*>(b);
  for (; n != 0; --n, ++x, ++y)
    if (*x != *y) return *x - *y;
  return 0;
}

}  // extern "C"
