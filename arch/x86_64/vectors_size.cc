// SPDX-License-Identifier: MIT
#include <cpuid.h>

#include "arch/remote_call.h"

namespace karst::arch {

std::uint64_t vectors_size() {
  unsigned enabled = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  // Leaf 13: in ebx what the parts need that the kernel has enabled.
  return __get_cpuid_count(13, 0, &enabled, &b, &c, &d) != 0 ? b : 0;
}

}  // namespace karst::arch
