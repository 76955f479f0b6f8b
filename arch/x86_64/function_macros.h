// SPDX-License-Identifier: MIT
// clang-format off
// What functions are made of that call one in C++ and go on, most of them into the one that they stand before. For the
// assembler alone. Any call may change the registers that they save, so no unwinder asks where those are.
	.macro	FUNCTION name, alignment=16
	.globl	\name
	.type	\name, @function
	.balign	\alignment
\name:
	.cfi_startproc
	endbr64
	.endm
	.macro	FUNCTION_END name
	.cfi_endproc
	.size	\name, . - \name
	.endm
	.macro	SAVE registers:vararg
	.irp	register, \registers
	pushq	%\register
	.cfi_adjust_cfa_offset 8
	.endr
	.endm
	.macro	RESTORE registers:vararg
	.irp	register, \registers
	popq	%\register
	.cfi_adjust_cfa_offset -8
	.endr
	.endm
	.macro	ALIGN			// the stack, for a call
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	.endm
	.macro	END_ALIGN
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	.endm
