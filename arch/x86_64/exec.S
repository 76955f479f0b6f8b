// Functions that start another program: each tells the session which (hooks/exec.cc) and goes on into libc's own with all
// arguments as they came, those on the stack among them.
//
// Entry state: 0(%rsp) return address; arguments as of any function of C; al as of a variadic one.
#include "runtime/hooks/exec.h"

	.hidden	karst_starts_program
	.text
	.macro	SAVE reg
	pushq	%\reg
	.cfi_adjust_cfa_offset 8
	.endm
	.macro	RESTORE reg
	popq	%\reg
	.cfi_adjust_cfa_offset -8
	.endm
	.macro	STARTS name, number		// number: hooks/exec.h
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	endbr64
	SAVE	rax
	SAVE	rdi
	SAVE	rsi
	SAVE	rdx
	SAVE	rcx
	SAVE	r8
	SAVE	r9
	movl	$\number, %edx
	call	karst_starts_program
	movq	%rax, %r11
	RESTORE	r9
	RESTORE	r8
	RESTORE	rcx
	RESTORE	rdx
	RESTORE	rsi
	RESTORE	rdi
	RESTORE	rax
	jmp	*%r11
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.set	.Lnext, 0
#define KARST_STARTS(name, constant) STARTS name, .Lnext; .set .Lnext, .Lnext + 1;
	KARST_EXEC_FUNCTIONS(KARST_STARTS)

	.section .note.GNU-stack, "", @progbits
