// karst_make_events(rdi: enter hook, rsi: exit hook, rdx: pairs): calls hooks as sleds do by their trampolines.
#include "format/event.h"

	.text
	.globl	karst_make_events
	.hidden	karst_make_events
	.type	karst_make_events, @function
	.balign	64
karst_make_events:
	.cfi_startproc
1:	call	2f
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

	.section .note.GNU-stack, "", @progbits
