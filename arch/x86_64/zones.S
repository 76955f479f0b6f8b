// SPDX-License-Identifier: MIT
// karst_api_zone_enter(name) and karst_api_zone_leave(name): a zone begins, and ends. A zone is a call of the function
// that its name stands for (runtime/modules/note_names.h), so the hooks in force record it, as they do for
// __cyg_profile_func_enter (instrument.S).
#include "arch/x86_64/function_macros.h"
#include "format/event.h"

	.hidden	karst_calls_enter
	.hidden	karst_calls_exit
	.hidden	karst_note_id
	.text

	.macro	ZONE name, slot, bits
	FUNCTION	\name, 64
	ALIGN
	call	karst_note_id
	END_ALIGN
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
	FUNCTION_END	\name
	.endm

	ZONE	karst_api_zone_enter, karst_calls_enter, 0
	ZONE	karst_api_zone_leave, karst_calls_exit, KARST_EVENT_EXIT_BIT

	.section .note.GNU-stack, "", @progbits
