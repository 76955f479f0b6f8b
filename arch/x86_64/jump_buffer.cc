// SPDX-License-Identifier: MIT
#include "arch/jump_buffer.h"

namespace karst::arch {

// glibc's jmp_buf holds rbx, rbp, r12, r13, r14, r15, rsp, pc; rbp, rsp and pc are mangled (PTR_MANGLE: exclusive-or
// with the thread's pointer guard at %fs:0x30, then rotated left by 17), so that overwriting a buffer is hard.
std::uintptr_t stack_pointer_of(const void* jmp_buf) {
  constexpr int kStackPointer = 6;
  std::uintptr_t value = static_cast<const std::uintptr_t*>(jmp_buf)[kStackPointer];
  asm("rorq $17, %0\n\txorq %%fs:0x30, %0" : "+r"(value));
  return value;
}

std::uintptr_t stack_pointer_of(const ucontext_t& context) {
  constexpr int kRegRsp = 15;  // REG_RSP, which <ucontext.h> shows with _GNU_SOURCE alone
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[kRegRsp]);
}

}  // namespace karst::arch
