// SPDX-License-Identifier: MIT
// The hooks of functions that the program's own code is called for (runtime/values/handlers.h). The handlers are called
// within the call: behind its enter, and before its exit. What is noted of the call's values lies where it does for others
// (hooks.S: VALUES). The sled's registers are where PUSH_SOME and PUSH_REST put them (format/values.h: SavedRegisters).
#include "arch/x86_64/hook_macros.h"
#include "arch/x86_64/vectors.h"

	.hidden	karst_record_values
	.hidden	karst_call_handlers
	.hidden	karst_plain_enter
	.hidden	karst_plain_exit
	.hidden	karst_watched_enter_deeper
	.hidden	karst_watched_exit
	.text

// The hook in force finds the sled's return address KARST_KEPT_FLAGS_SIZE higher than others do.
	.macro	HANDLED_ENTER name, hook
	HOOK	\name
	CALL_SAVED karst_record_values
	subq	$16, %rsp
	.cfi_adjust_cfa_offset 16
	call	1f
	leaq	16(%rsp), %rsp
	.cfi_adjust_cfa_offset -16
	CALL_SAVED karst_call_handlers
	DROP
	ret
	.cfi_adjust_cfa_offset 32	// 0(%rsp) return address, 8 and 16 nothing, 24 the event's low bits
1:	pushq	24(%rsp)
	.cfi_adjust_cfa_offset 8
	jmpq	*\hook(%rip)
	HOOK_END \name
	.endm

	.macro	HANDLED_EXIT name, hook
	HOOK	\name
	CALL_SAVED karst_call_handlers, karst_record_values
	jmpq	*\hook(%rip)
	HOOK_END \name
	.endm

	HANDLED_ENTER karst_hook_handled_enter, karst_plain_enter
	HANDLED_EXIT karst_hook_handled_exit, karst_plain_exit
	HANDLED_ENTER karst_hook_handled_watched_enter, karst_watched_enter_deeper
	HANDLED_EXIT karst_hook_handled_watched_exit, karst_watched_exit

// karst_with_vectors_kept(function, argument): calls function(argument, where the vector and x87 registers are kept). They
// come back behind it: a function's arguments and results are in them, and the handler is any code. The x87 stack is empty
// for it, as it is between functions but for results.
	.globl	karst_with_vectors_kept
	.hidden	karst_with_vectors_kept
	.type	karst_with_vectors_kept, @function
karst_with_vectors_kept:
	.cfi_startproc
	PUSH	rbp
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	pushq	%rbx
	.cfi_offset rbx, -24
	subq	$(KARST_VECTORS_SIZE + 8), %rsp
	andq	$-64, %rsp
	movq	%rsp, %rbx
	xorl	%eax, %eax
	.irp	place, 0, 8, 16, 24, 32, 40, 48, 56	// the header, which xsave does not write whole
	movq	%rax, (KARST_VECTORS_HEADER + \place)(%rbx)
	.endr
	xorl	%edx, %edx
	movl	$KARST_VECTORS_MASK, %eax
	xsave64	(%rbx)
	emms
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rbx, %rsi
	call	*%rax
	xorl	%edx, %edx
	movl	$KARST_VECTORS_MASK, %eax
	xrstor64 (%rbx)
	movq	-8(%rbp), %rbx
	movq	%rbp, %rsp
	.cfi_def_cfa_register rsp
	POP	rbp
	ret
	.cfi_endproc
	.size	karst_with_vectors_kept, . - karst_with_vectors_kept

	.section .note.GNU-stack, "", @progbits
