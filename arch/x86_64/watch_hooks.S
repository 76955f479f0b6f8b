// SPDX-License-Identifier: MIT
// The hooks of watched functions (watching/watch.h): they record the event as karst_hook_trace does (hooks.S) and keep the
// thread's stack of open watched calls.
#include "arch/x86_64/hook_macros.h"
#include "runtime/watching/watch.h"

	.hidden	karst_watched
	.hidden	karst_watch_enter
	.hidden	karst_watch_exit
	.hidden	karst_plain_enter
	.hidden	karst_plain_exit
	.hidden	karst_watched_enter
	.hidden	karst_watched_exit
	.text

	.macro	CALL_WATCH function, above=0	// function(event, stack pointer at the sled)
	PUSH_REST
	movq	%rdx, %rdi
	leaq	96+\above(%rbp), %rsi
	call	\function
	POP_REST
	.endm

// Budget: 45 instructions from here to ret, 43 by the clock thread (checked by a test).
	.macro	WATCH_ENTER name, clock, above=0
	HOOK	\name
	PUSH_SOME
	RECORD	\clock, 32, 2f, 3f, 6f
	movq	KARST_STATE_WATCH(%rcx), %rsi	// rsi: the entry
	testl	$(KARST_WATCH_STACK - 1), %esi
	jz	4f				// there is no stack yet, or no room
	leaq	KARST_WATCH_ENTRY(%rsi), %rax
	movq	%rax, KARST_STATE_WATCH(%rcx)	// handlers go on behind it
	movl	KARST_STATE_EPOCH(%rcx), %eax
	movl	%eax, KARST_WATCH_EPOCH(%rsi)
	leaq	48+\above(%rsp), %rax
	movq	%rax, KARST_WATCH_POINTER(%rsi)
	movl	32(%rsp), %eax
	shlq	$KARST_WATCHED_SHIFT, %rax
	addq	karst_watched(%rip), %rax
	movq	(%rax), %rax
	movq	%rax, KARST_WATCH_LIMIT(%rsi)
	movq	%rdx, KARST_WATCH_ENTER(%rsi)
	.cfi_remember_state
	RETURN
4:	.cfi_restore_state
	CALL_WATCH karst_watch_enter, \above
	.cfi_remember_state
	RETURN
2:	.cfi_restore_state
	GO_SLOWLY 1b
3:	FILL	-8(%rsi)
	jmp	1b
6:	GIVE_UP 1b
	HOOK_END \name
	.endm

// Two ids may be one function's (a tail call's exit): the lower bits of the difference are the exit bit and that of the
// ids, which is never negative, so nothing is borrowed from the time.
// Budget: 48 instructions, 46 by the clock thread (checked by a test).
	.macro	WATCH_EXIT name, clock, above=0
	HOOK	\name
	PUSH_SOME
	RECORD	\clock, 32, 2f, 3f, 6f
	movq	KARST_STATE_WATCH(%rcx), %rsi	// rsi: behind the last entry
	testq	%rsi, %rsi
	jz	5f
	leaq	48+\above(%rsp), %rax
	cmpq	%rax, KARST_WATCH_POINTER-KARST_WATCH_ENTRY(%rsi)
	jne	4f				// another call's
	movl	KARST_STATE_EPOCH(%rcx), %eax
	cmpl	%eax, KARST_WATCH_EPOCH-KARST_WATCH_ENTRY(%rsi)
	jne	4f
	movq	KARST_WATCH_ENTER-KARST_WATCH_ENTRY(%rsi), %rax
	negq	%rax
	addq	%rdx, %rax
	shrq	$KARST_EVENT_TICK_SHIFT, %rax	// rax: ticks
	cmpq	KARST_WATCH_LIMIT-KARST_WATCH_ENTRY(%rsi), %rax
	jae	4f
	movq	$0, KARST_WATCH_ENTER-KARST_WATCH_ENTRY(%rsi)
	subq	$KARST_WATCH_ENTRY, %rsi
	movq	%rsi, KARST_STATE_WATCH(%rcx)
5:	.cfi_remember_state
	RETURN
4:	.cfi_restore_state
	CALL_WATCH karst_watch_exit, \above
	.cfi_remember_state
	RETURN
2:	.cfi_restore_state
	GO_SLOWLY 1b
3:	FILL	-8(%rsi)
	jmp	1b
6:	GIVE_UP 1b
	HOOK_END \name
	.endm

	WATCH_ENTER karst_hook_watch_enter, tsc
	WATCH_EXIT karst_hook_watch_exit, tsc
	WATCH_ENTER karst_hook_watch_enter_clock, clock
	WATCH_EXIT karst_hook_watch_exit_clock, clock
	WATCH_ENTER karst_hook_watch_enter_deeper, tsc, KARST_KEPT_FLAGS_SIZE
	WATCH_ENTER karst_hook_watch_enter_clock_deeper, clock, KARST_KEPT_FLAGS_SIZE
	WATCH_EXIT karst_hook_watch_exit_deeper, tsc, KARST_KEPT_FLAGS_SIZE
	WATCH_EXIT karst_hook_watch_exit_clock_deeper, clock, KARST_KEPT_FLAGS_SIZE

// For -finstrument-functions, whose calls all come by one pointer: some functions are watched, others are not.
	.macro	DIVIDE name, plain, watched
	HOOK	\name
	PUSH	rax
	movl	8(%rsp), %eax
	andl	$KARST_EVENT_ID_MASK, %eax
	shlq	$KARST_WATCHED_SHIFT, %rax
	addq	karst_watched(%rip), %rax
	cmpl	$0, KARST_WATCHED_FIRST(%rax)
	POP	rax
	jne	1f
	jmpq	*\plain(%rip)
1:	jmpq	*\watched(%rip)
	HOOK_END \name
	.endm

	DIVIDE	karst_hook_divide_enter, karst_plain_enter, karst_watched_enter
	DIVIDE	karst_hook_divide_exit, karst_plain_exit, karst_watched_exit

	.section .note.GNU-stack, "", @progbits
