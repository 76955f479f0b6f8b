// SPDX-License-Identifier: MIT
#include "arch/x86_64/vectors.h"

#include <cpuid.h>

namespace karst::arch {

bool can_keep_vectors() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kXsaveIsUsed = 1U << 27;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kXsaveIsUsed) == 0) return false;
  // Leaf 13: in eax the parts that the processor has; below it, for each from the third on, its size and place.
  if (__get_cpuid_count(13, 0, &a, &b, &c, &d) == 0) return false;
  const unsigned parts = a & KARST_VECTORS_MASK;
  for (unsigned part = 2; part < 8; ++part) {
    if ((parts >> part & 1) == 0) continue;
    unsigned size = 0, place = 0;
    if (__get_cpuid_count(13, part, &size, &place, &c, &d) == 0 || size + place > KARST_VECTORS_SIZE) return false;
  }
  return true;
}

}  // namespace karst::arch
