// clang-format off
// What hooks are made of (hooks.S, watch_hooks.S). For the assembler alone.
#include "runtime/core/state.h"

	.hidden	karst_state
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

	.macro	PUSH_SOME
	PUSH	rax
	PUSH	rdx
	PUSH	rcx
	PUSH	rsi
	.endm
	.macro	RETURN			// to the sled
	POP	rsi
	POP	rcx
	POP	rdx
	POP	rax
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.endm
	.macro	STAMP clock, slow	// rdx: event; rax is lost. rcx: state
	.ifc	\clock, tsc
	rdtsc
	xorl	KARST_STATE_EPOCH(%rcx), %edx	// edx: bits 32..39 if the epoch is the block's
	cmpl	$0xff, %edx
	ja	\slow				// another epoch needs another block
	shlq	$32, %rdx
	orq	%rax, %rdx
	.else
	movq	karst_clock(%rip), %rdx
	movq	%rdx, %rax
	shrq	$32, %rax
	xorl	KARST_STATE_EPOCH(%rcx), %eax
	cmpl	$0xff, %eax
	ja	\slow				// also: the clock thread sleeps
	.endif
	shlq	$KARST_EVENT_TICK_SHIFT, %rdx
	orq	32(%rsp), %rdx
	.endm
	.macro	CHECK late		// behind the taking of a slot. rdx: event. rcx: state
	cmpq	KARST_STATE_BEGIN(%rcx), %rdx
	jb	\late
	.endm
	.macro	FILL retry, slot	// the slot belongs to an event that came late
	movq	KARST_STATE_BEGIN(%rcx), %rdx
	orq	$(KARST_EVENT_EXIT_BIT | KARST_MARK_PAD), %rdx
	movq	%rdx, (%\slot)
	jmp	\retry
	.endm
	.macro	GO_SLOWLY retry
	PUSH_REST
	call	karst_slow_path
	POP_REST
	movq	karst_state@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx
	jmp	\retry
	.endm
	.macro	GIVE_UP retry		// a handler came between; the slot that was taken is not known. rsi: the one in mind
	PUSH_REST
	movq	%rsi, %rdi
	call	karst_fill_claimed
	POP_REST
	movq	karst_state@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx
	jmp	\retry
	.endm
	.macro	RECORD clock, slow, late, lost	// one event into the thread's block; leaves rdx: event, rcx: state
	PUSH_SOME
	movq	karst_state@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx		// rcx: state
1:	movq	KARST_STATE_CURSOR(%rcx), %rsi	// rsi: slot
	testl	$KARST_SLOT_BITS, %esi
	jz	\slow				// the block is full, or there is none
	STAMP	\clock, \slow
	leaq	8(%rsi), %rax
	addq	$8, KARST_STATE_CURSOR(%rcx)
	cmpq	%rax, KARST_STATE_CURSOR(%rcx)
	jne	\lost				// a signal handler took slots
	CHECK	\late
	movq	%rdx, (%rsi)
	.endm
