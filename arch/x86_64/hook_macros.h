// SPDX-License-Identifier: MIT
// clang-format off
// What hooks are made of (hooks.S, watch_hooks.S). For the assembler alone.
#include "runtime/recording/state.h"

// What karst_hook_keep_flags has on the stack between the sled's return address and the hook that it calls.
#define KARST_KEPT_FLAGS_SIZE 32

	.hidden	karst_state
	.type	karst_state, @tls_object
	.hidden	karst_slow_path
	.hidden	karst_fill_claimed
	.hidden	karst_clock

	.macro	PUSH reg
	pushq	%\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
	.endm
	.macro	POP reg
	popq	%\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
	.endm
	.macro	PUSH_REST		// what a C function may clobber beyond rax, rdx, rcx and rsi
	PUSH	rdi
	PUSH	r8
	PUSH	r9
	PUSH	r10
	PUSH	r11
	PUSH	rbp
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	andq	$-16, %rsp
	.endm
	.macro	POP_REST
	movq	%rbp, %rsp
	.cfi_def_cfa_register rsp
	POP	rbp
	POP	r11
	POP	r10
	POP	r9
	POP	r8
	POP	rdi
	.endm
	.macro	HOOK name
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign	64
\name:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	.endm
	.macro	HOOK_END name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.macro	PUSH_FEW
	PUSH	rdx
	PUSH	rcx
	PUSH	rsi
	.endm
	.macro	PUSH_SOME
	PUSH	rax
	PUSH_FEW
	.endm
	.macro	POP_SOME
	POP	rsi
	POP	rcx
	POP	rdx
	POP	rax
	.endm
	.macro	CALL_SAVED function, second	// function(SavedRegisters), and another (format/values.h)
	PUSH_SOME
	PUSH_REST
	movq	%rbp, %rdi
	call	\function
	.ifnb	\second
	movq	%rbp, %rdi
	call	\second
	.endif
	POP_REST
	POP_SOME
	.endm
	.macro	DROP			// the event's low bits
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	.endm
	.macro	RETURN_FEW		// to the sled
	POP	rsi
	POP	rcx
	POP	rdx
	DROP
	ret
	.endm
	.macro	RETURN
	POP_SOME
	DROP
	ret
	.endm
	.macro	STATE			// rcx: state
	movq	karst_state@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx
	.endm
	.macro	STAMP clock, bits, slow	// rdx: event. rcx: state; by the TSC rax is lost
	.ifc	\clock, tsc
	rdtsc
	xorl	KARST_STATE_EPOCH(%rcx), %edx	// edx: bits 32..39 if the epoch is the block's
	cmpl	$0xff, %edx
	ja	\slow				// another epoch needs another block
	shlq	$32, %rdx
	orq	%rax, %rdx
	shlq	$KARST_EVENT_TICK_SHIFT, %rdx
	.else
	movq	karst_clock(%rip), %rdx
	subq	KARST_STATE_EPOCH_BEGIN(%rcx), %rdx
	rolq	$KARST_EVENT_TICK_SHIFT, %rdx	// the bits beyond an epoch come to where the id belongs
	testl	$((1 << KARST_EVENT_TICK_SHIFT) - 1), %edx
	jnz	\slow				// also: the clock thread sleeps
	.endif
	orq	\bits(%rsp), %rdx
	.endm
	.macro	CHECK late		// behind the taking of a slot. rdx: event. rcx: state
	cmpq	KARST_STATE_BEGIN(%rcx), %rdx
	jb	\late
	.endm
	.macro	FILL slot		// it belongs to an event that came late; rdx is lost
	movq	KARST_STATE_BEGIN(%rcx), %rdx
	orq	$(KARST_EVENT_EXIT_BIT | KARST_MARK_PAD), %rdx
	movq	%rdx, \slot
	.endm
	.macro	CALL_SLOWLY function, saved	// rsi: behind a slot, the argument if one is wanted. saved: FEW if rax is not yet
	.ifc	\saved, FEW
	PUSH	rax
	.endif
	PUSH_REST
	leaq	-8(%rsi), %rdi
	call	\function
	POP_REST
	.ifc	\saved, FEW
	POP	rax
	.endif
	STATE
	.endm
	.macro	GO_SLOWLY retry, saved
	CALL_SLOWLY karst_slow_path, \saved
	jmp	\retry
	.endm
	.macro	GIVE_UP retry, saved	// a handler came between; which slot was taken is not known. rsi: behind the one in mind
	CALL_SLOWLY karst_fill_claimed, \saved
	jmp	\retry
	.endm
	.macro	RECORD clock, bits, slow, late, lost	// one event into the thread's block; leaves rdx: event, rcx: state
	STATE
1:	movq	KARST_STATE_CURSOR(%rcx), %rsi	// rsi: slot
	testl	$KARST_SLOT_BITS, %esi
	jz	\slow				// the block is full, or there is none
	STAMP	\clock, \bits, \slow
	addq	$8, %rsi
	addq	$8, KARST_STATE_CURSOR(%rcx)
	cmpq	%rsi, KARST_STATE_CURSOR(%rcx)
	jne	\lost				// a signal handler took slots
	CHECK	\late
	movq	%rdx, -8(%rsi)
	.endm
