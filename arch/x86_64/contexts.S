// jump_fcontext(to, data) and ontop_fcontext(to, data, function) of libboost_context: told of, then libboost_context's
// own, which must find the stack as its caller has it. interpose/contexts.cc.
//
// Entry state: 0(%rsp) return address; rdi, rsi and rdx arguments. What a call may change is free.
	.text
	.hidden	karst_switches_context
	.macro	SWITCHES name, which
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
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movq	%rdi, %rsi
	movl	$\which, %edi
	leaq	24(%rsp), %rdx		// the stack pointer at entry
	call	karst_switches_context
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	\name, . - \name
	.endm

	SWITCHES jump_fcontext, 0
	SWITCHES ontop_fcontext, 1

	.section .note.GNU-stack, "", @progbits
