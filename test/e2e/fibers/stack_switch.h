// Stacks that a program switches by assembly of its own, as Boost.Context, libco and minicoro do.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "karst/karst.h"

/// Saves what a call must keep on the present stack and its end in *from, and goes on at `to`.
extern "C" void switch_stack(void** from, void* to);
asm(R"(
	.text
	.globl switch_stack
	.type switch_stack, @function
switch_stack:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size switch_stack, . - switch_stack
	.section .note.GNU-stack, "", @progbits
	.text
)");

/// A stack on which `start` will begin; it never returns.
KARST_NOTRACE inline void* new_stack(void (*start)(), std::size_t size) {
  auto* memory = static_cast<std::uintptr_t*>(std::calloc(1, size));
  std::uintptr_t* top = memory + size / sizeof *memory;
  *--top = 0;  // as a return address of `start`; it lies as a call puts it
  *--top = reinterpret_cast<std::uintptr_t>(start);
  top -= 6;
  return top;
}
