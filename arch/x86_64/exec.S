// Functions that start another program: each tells the session which (hooks/exec.cc) and goes on into libc's own with all
// arguments as they came, those on the stack among them.
//
// Entry state: 0(%rsp) return address; arguments as of any function of C; al as of a variadic one.
#include "arch/x86_64/function_macros.h"
#include "runtime/hooks/exec.h"

	.hidden	karst_starts_program
	.text
	.macro	STARTS name, number		// number: hooks/exec.h
	FUNCTION	\name
	SAVE	rax, rdi, rsi, rdx, rcx, r8, r9
	movl	$\number, %edx
	call	karst_starts_program
	movq	%rax, %r11
	RESTORE	r9, r8, rcx, rdx, rsi, rdi, rax
	jmp	*%r11
	FUNCTION_END	\name
	.endm

	.set	.Lnext, 0
#define KARST_STARTS(name, constant) STARTS name, .Lnext; .set .Lnext, .Lnext + 1;
	KARST_EXEC_FUNCTIONS(KARST_STARTS)

	.section .note.GNU-stack, "", @progbits
