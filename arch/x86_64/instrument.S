// SPDX-License-Identifier: MIT
// __cyg_profile_func_enter(function, call site) and __cyg_profile_func_exit: what code made with
// -finstrument-functions calls, as it calls any function of C. They look up the function's id and go on as a trampoline
// does (hooks.S), so the same hooks serve them.
#include "arch/x86_64/function_macros.h"
#include "format/event.h"
#include "runtime/modules/instrument.h"

	.hidden	karst_calls
	.hidden	karst_calls_enter
	.hidden	karst_calls_exit
	.hidden	karst_find_call
	.text

// Static programs have the table from the start, if they are traced.
#ifdef KARST_STATIC
#define KARST_WITHOUT_TABLE 3f
#else
#define KARST_WITHOUT_TABLE 2f
#endif

	.macro	CYG name, slot, bits
	FUNCTION	\name, 64
	movq	karst_calls(%rip), %rcx		// rcx: table
	movq	%rdi, %rax
	movq	%rdi, %rdx
	testq	%rcx, %rcx
	jz	KARST_WITHOUT_TABLE
	shrq	$KARST_CALLS_FAR_SHIFT, %rdx
	shrq	$KARST_CALLS_NEAR_SHIFT, %rax
	imulq	$KARST_CALLS_FACTOR, %rdx, %rdx
	addq	%rdx, %rax
	andl	$((1 << KARST_CALLS_BITS) - 1), %eax
	shlq	$4, %rax
	addq	%rcx, %rax			// rax: entry
	cmpq	%rdi, (%rax)
	jne	2f
	movl	8(%rax), %eax			// eax: id, 0, or undecided
	testl	%eax, %eax
	jle	4f
1:	.if	\bits
	orl	$\bits, %eax
	.endif
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	jmpq	*\slot(%rip)
	.cfi_adjust_cfa_offset -8
4:	jz	3f
2:	ALIGN
	call	karst_find_call
	END_ALIGN
	testl	%eax, %eax
	jnz	1b
3:	ret
	FUNCTION_END	\name
	.endm

	CYG	__cyg_profile_func_enter, karst_calls_enter, 0
	CYG	__cyg_profile_func_exit, karst_calls_exit, KARST_EVENT_EXIT_BIT

	.section .note.GNU-stack, "", @progbits
