// karst_api_zone_enter(name) and karst_api_zone_leave(name): a zone begins, and ends. A zone is a call of the function
// that its name stands for (runtime/hooks/note_names.h), so the hooks in force record it, as they do for
// __cyg_profile_func_enter (instrument.S).
#include "format/event.h"

	.hidden	karst_calls_enter
	.hidden	karst_calls_exit
	.hidden	karst_note_id
	.text

	.macro	ZONE name, slot, bits
	.globl	\name
	.type	\name, @function
	.balign	64
\name:
	.cfi_startproc
	endbr64
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	karst_note_id
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	testl	%eax, %eax
	jz	1f
	.if	\bits
	orl	$\bits, %eax
	.endif
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	jmpq	*\slot(%rip)
	.cfi_adjust_cfa_offset -8
1:	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	ZONE	karst_api_zone_enter, karst_calls_enter, 0
	ZONE	karst_api_zone_leave, karst_calls_exit, KARST_EVENT_EXIT_BIT

	.section .note.GNU-stack, "", @progbits
