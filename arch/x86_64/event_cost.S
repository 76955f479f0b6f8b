// SPDX-License-Identifier: MIT
// What times hooks (runtime/budget/event_cost.cc): calls of nothing but a body of `rcx` multiplications, one after the
// other, which is work of some ten nanoseconds as programs have it between events.
//
// karst_make_events(rdi: enter hook, rsi: exit hook, rdx: calls, rcx): as sleds call hooks by their trampolines.
// karst_make_bodies(rdx: calls, rcx): the same without hooks. (rdi and rsi are not looked at.)
#include "format/event.h"

	.text
	.macro	BODY
	movl	$3, %r8d			// no call waits for the one before it
	movl	%ecx, %eax
9:	imulq	$3, %r8, %r8
	decl	%eax
	jnz	9b
	.endm

	.globl	karst_make_events
	.hidden	karst_make_events
	.type	karst_make_events, @function
	.balign	64
karst_make_events:
	.cfi_startproc
1:	call	2f
	BODY
	call	3f
	decq	%rdx
	jnz	1b
	ret
	.balign	16
2:	pushq	$1
	.cfi_adjust_cfa_offset 16
	jmpq	*%rdi
	.cfi_adjust_cfa_offset -16
	.balign	16
3:	pushq	$(KARST_EVENT_EXIT_BIT | 1)
	.cfi_adjust_cfa_offset 16
	jmpq	*%rsi
	.cfi_endproc
	.size	karst_make_events, . - karst_make_events

	.globl	karst_make_bodies
	.hidden	karst_make_bodies
	.type	karst_make_bodies, @function
	.balign	64
karst_make_bodies:
	.cfi_startproc
1:	BODY
	decq	%rdx
	jnz	1b
	ret
	.cfi_endproc
	.size	karst_make_bodies, . - karst_make_bodies

	.section .note.GNU-stack, "", @progbits
