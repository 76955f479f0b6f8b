// SPDX-License-Identifier: MIT
// The hooks of `karst run --fibers=stack` (runtime/fibers/stacks.h): they see to it that the thread's stack is known, then
// the hook in force records the event as it does without them. They leave the stack as they found it.
#include "arch/x86_64/hook_macros.h"
#include "runtime/fibers/stacks.h"

	.hidden	karst_stack
	.type	karst_stack, @tls_object
	.hidden	karst_stacks
	.hidden	karst_find_stack
	.text

// Budget: 16 instructions from here to the hook in force, 17 at an exit (checked by a test).
	.macro	STACK name, which, exit=0
	.hidden	karst_behind_stack_\which
	HOOK	\name
	PUSH	rcx
	PUSH	rax
	movq	karst_stack@gottpoff(%rip), %rcx
	movl	%fs:(%rcx), %ecx
	addq	karst_stacks(%rip), %rcx	// rcx: the stack that the thread ran on last
	cmpq	%rsp, KARST_STACK_LOW(%rcx)
	ja	1f
	cmpq	%rsp, KARST_STACK_HIGH(%rcx)
	jb	1f
	movq	%fs:0, %rax
	cmpq	KARST_STACK_OWNER(%rcx), %rax
	jne	1f				// it went on in another thread since
	movq	%rsp, KARST_STACK_LAST(%rcx)
	.if	\exit
	incb	KARST_STACK_LAST(%rcx)
	.endif
	.cfi_remember_state
	POP	rax
	POP	rcx
	jmpq	*karst_behind_stack_\which(%rip)
1:	.cfi_restore_state
	POP	rax
	POP	rcx
	CALL_SAVED karst_find_stack
	jmpq	*karst_behind_stack_\which(%rip)
	HOOK_END \name
	.endm

	STACK karst_hook_stack_enter, enter
	STACK karst_hook_stack_exit, exit, 1
	STACK karst_hook_stack_watched_enter, watched_enter
	STACK karst_hook_stack_watched_exit, watched_exit, 1
	STACK karst_hook_stack_watched_enter_deeper, watched_enter_deeper
	STACK karst_hook_stack_watched_exit_deeper, watched_exit_deeper, 1

	.section .note.GNU-stack, "", @progbits
