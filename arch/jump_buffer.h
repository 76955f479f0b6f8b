// SPDX-License-Identifier: MIT
// Where libc's buffers lead to, on each processor architecture.
#pragma once
#include <ucontext.h>

#include <cstdint>

namespace karst::arch {

/// The stack pointer that a longjmp by this jmp_buf restores.
std::uintptr_t stack_pointer_of(const void* jmp_buf);
/// The stack pointer that setcontext restores.
std::uintptr_t stack_pointer_of(const ucontext_t& context);

}  // namespace karst::arch
