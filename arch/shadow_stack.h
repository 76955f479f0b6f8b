// SPDX-License-Identifier: MIT
// Whether the processor keeps return addresses on a second stack for the calling thread (x86: CET's shadow stack), and
// ends a program that returns to another one.
#pragma once
#include <cstdint>

namespace karst::arch {

inline bool has_shadow_stack() {
#if defined(__x86_64__)
  // rdsspq %rax: the shadow stack's pointer. Without such a stack, and on older processors, it does nothing.
  std::uint64_t pointer = 0;
  asm volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(pointer));
  return pointer != 0;
#else
  return false;
#endif
}

}  // namespace karst::arch
