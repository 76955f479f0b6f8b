// SPDX-License-Identifier: MIT
// karst_api_zone_enter(name) and karst_api_zone_leave(name): a zone begins, and ends. A zone is a call of the function
// that its name stands for (runtime/modules/note_names.h), so the hooks in force record it, as they do for
// __cyg_profile_func_enter (instrument.S). karst_api_enter(id) and karst_api_exit(id) do the same with a function that has
// a name and no code (runtime/modules/named_functions.h).
#include "arch/x86_64/function_macros.h"
#include "format/event.h"

	.hidden	karst_calls_enter
	.hidden	karst_calls_exit
	.hidden	karst_note_id
	.hidden	karst_wanted_function
	.text

	.macro	ZONE name, find, slot, bits
	FUNCTION	\name, 64
	ALIGN
	call	\find
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

	ZONE	karst_api_zone_enter, karst_note_id, karst_calls_enter, 0
	ZONE	karst_api_zone_leave, karst_note_id, karst_calls_exit, KARST_EVENT_EXIT_BIT
	ZONE	karst_api_enter, karst_wanted_function, karst_calls_enter, 0
	ZONE	karst_api_exit, karst_wanted_function, karst_calls_exit, KARST_EVENT_EXIT_BIT

	.section .note.GNU-stack, "", @progbits
