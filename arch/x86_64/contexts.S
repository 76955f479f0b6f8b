// SPDX-License-Identifier: MIT
// jump_fcontext(to, data) and ontop_fcontext(to, data, function) of libboost_context: told of, then libboost_context's
// own, which must find the stack as its caller has it. interpose/contexts.cc.
//
// Entry state: 0(%rsp) return address; rdi, rsi and rdx arguments. What a call may change is free.
#include "arch/x86_64/function_macros.h"

	.text
	.hidden	karst_switches_context
	.macro	SWITCHES name, which
	FUNCTION	\name
	SAVE	rdi, rsi, rdx
	movq	%rdi, %rsi
	movl	$\which, %edi
	leaq	24(%rsp), %rdx		// the stack pointer at entry
	call	karst_switches_context
	RESTORE	rdx, rsi, rdi
	jmp	*%rax
	FUNCTION_END	\name
	.endm

	SWITCHES jump_fcontext, 0
	SWITCHES ontop_fcontext, 1

	.section .note.GNU-stack, "", @progbits
