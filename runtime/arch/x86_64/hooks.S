// The hooks: what a patched sled calls, by way of its function's trampoline.
//
//   sled:        call trampoline
//   trampoline:  push $event_low_bits      (id, and the exit bit in an exit trampoline)
//                jmp  *slot(%rip)          (one of the hooks below)
//
// Entry state of every hook:   0(%rsp) event's low 24 bits    8(%rsp) return address, behind the sled
// Every register is preserved but the flags: a sled stands where arguments (also al of a variadic
// call and r10 of a nested function), return values or the target of a tail call are live. No vector
// or x87 register is touched. A hook returns by `ret`, so calls and returns stay paired for the CPU.
#include "runtime/core/state.h"

	.hidden	karst_state
	.hidden	karst_slow_path
	.hidden	karst_record_by_tid
	.text

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

// karst_hook_trace: records one event. Budget: 28 instructions from here to ret (checked by a test).
//
// A signal handler may interrupt it anywhere and run hooks itself. The slot is taken by one cmpxchg
// (no lock prefix needed: only this thread's own handlers compete): if a handler recorded events since the
// cursor was read, the cursor has moved; the event is stamped anew and comes after them. Between cmpxchg and
// the store the slot reads as zero, and handlers use the slots behind it.
	HOOK	karst_hook_trace
	PUSH	rax
	PUSH	rdx
	PUSH	rcx
	PUSH	rsi
	movq	karst_state@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx		// rcx: state
.Lretry:
	movq	KARST_STATE_CURSOR(%rcx), %rsi	// rsi: slot
	testl	$(KARST_BLOCK_SIZE - 1), %esi
	jz	.Lslow				// the block is full, or there is none
	rdtsc
	xorl	KARST_STATE_EPOCH(%rcx), %edx	// edx: bits 32..39 if the epoch is the block's
	cmpl	$0xff, %edx
	ja	.Lslow				// another epoch needs another block
	shlq	$32, %rdx
	orq	%rax, %rdx
	shlq	$KARST_EVENT_TICK_SHIFT, %rdx
	orq	32(%rsp), %rdx			// rdx: event
	movq	%rsi, %rax
	addq	$8, %rsi
	cmpxchgq %rsi, KARST_STATE_CURSOR(%rcx)
	jne	.Lretry				// a signal handler took the slot
	movq	%rdx, (%rax)
	.cfi_remember_state
	POP	rsi
	POP	rcx
	POP	rdx
	POP	rax
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
.Lslow:
	.cfi_restore_state
	PUSH_REST
	call	karst_slow_path
	POP_REST
	movq	karst_state@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx
	jmp	.Lretry
	HOOK_END karst_hook_trace

// karst_hook_trace_by_tid: the same event, for processes with threads that a thread-local pointer cannot find
// (core/clone.cc): it asks the kernel for the thread's id. Some 20 times slower, and in use only once the program makes
// such a thread.
	HOOK	karst_hook_trace_by_tid
	PUSH	rax
	PUSH	rdx
	PUSH	rcx
	PUSH	rsi
	movq	32(%rsp), %rax
	PUSH_REST
	movq	%rax, %rdi
	call	karst_record_by_tid
	POP_REST
	POP	rsi
	POP	rcx
	POP	rdx
	POP	rax
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
	HOOK_END karst_hook_trace_by_tid

// karst_hook_discard: records nothing. For forked children, whose history belongs to nobody.
	HOOK	karst_hook_discard
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
	HOOK_END karst_hook_discard

	.section .note.GNU-stack, "", @progbits
