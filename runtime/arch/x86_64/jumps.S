// Functions that return twice. Each notes the place and goes on into libc's own, which must find the stack and the
// registers that it saves as its caller has them: nothing stays on the stack, only what a call may change is changed.
//
// Entry state: 0(%rsp) return address; rdi and rsi arguments. After the call the caller's stack pointer is rsp + 8.

	.text
	.macro	NOTED name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	.endm
	.macro	GO_ON name
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.macro	SETS_PLACE name, number	// number: Function in hooks/jumps.cc
	NOTED	\name
	movl	$\number, %edi
	leaq	32(%rsp), %rsi
	call	karst_sets_place
	GO_ON	\name
	.endm

	.hidden	karst_sets_place
	.hidden	karst_sets_context
	.hidden	karst_swaps_context

	SETS_PLACE setjmp, 0
	SETS_PLACE _setjmp, 1
	SETS_PLACE __sigsetjmp, 2
	SETS_PLACE getcontext, 3

	NOTED	setcontext
	leaq	32(%rsp), %rsi
	call	karst_sets_context
	GO_ON	setcontext

	NOTED	swapcontext
	movq	%rsi, %rdi
	leaq	32(%rsp), %rsi
	call	karst_swaps_context
	GO_ON	swapcontext

	.section .note.GNU-stack, "", @progbits
