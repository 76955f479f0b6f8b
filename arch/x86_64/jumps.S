// SPDX-License-Identifier: MIT
// Functions that return twice. Each notes the place and goes on into libc's own, which must find the stack and the
// registers that it saves as its caller has them: nothing stays on the stack, only what a call may change is changed.
//
// Entry state: 0(%rsp) return address; rdi and rsi arguments. After the call the caller's stack pointer is rsp + 8.
#include "arch/x86_64/function_macros.h"
#include "format/event.h"
#include "runtime/recording/state.h"
#include "runtime/ways_out/jumps.h"
#include "runtime/ways_out/ways_out.h"

	.hidden	karst_state
	.hidden	karst_marks_slowly
	.hidden	karst_libc
	.set	.Lnext, 0
#define KARST_SET(name, constant) .set constant, .Lnext; .set .Lnext, .Lnext + 1;
	KARST_JUMP_FUNCTIONS(KARST_SET)
	.text
	.macro	NOTED name
	.type	\name, @function
\name:
	.cfi_startproc
	endbr64
	SAVE	rdi, rsi
	ALIGN
	.endm
	.macro	GO_ON name
	END_ALIGN
	RESTORE	rsi, rdi
	jmp	*%rax
	FUNCTION_END	\name
	.endm

	.macro	SETS_PLACE name, number	// number: ways_out/jumps.h
	FUNCTION	\name
	cmpl	$0, karst_marks_slowly(%rip)
	jne	.Lslowly_\name
	movq	karst_libc + 8 * \number(%rip), %r9
	testq	%r9, %r9
	jz	.Lslowly_\name
	leaq	8(%rsp), %rdx
	shrq	$4, %rdx
	shlq	$KARST_EVENT_TICK_SHIFT, %rdx
	orq	$(KARST_EVENT_EXIT_BIT | KARST_MARK_SET_PLACE), %rdx	// rdx: the word; it has no clock
	movq	karst_state@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx
1:	movq	KARST_STATE_CURSOR(%rcx), %rax
	testl	$KARST_SLOT_BITS, %eax
	jz	.Lslowly_\name			// no slot, or a thread without events
	leaq	8(%rax), %r8
	cmpxchgq %r8, KARST_STATE_CURSOR(%rcx)
	jne	1b				// a signal handler took it
	movq	%rdx, (%rax)
	jmp	*%r9
	.cfi_endproc
.Lslowly_\name:
	.size	\name, . - \name
	NOTED	slowly_\name
	movl	$\number, %edi
	leaq	32(%rsp), %rsi
	call	karst_sets_place
	GO_ON	slowly_\name
	.endm

// longjmp and its like: the mark with the present time and, behind it, the stack pointer that execution goes on with,
// which is that of rsp's place in the jmp_buf, mangled (arch/x86_64/jump_buffer.cc). A jump down leads to another
// stack, which is looked into in C++.
	.macro	JUMPS name, number
	FUNCTION	\name
	cmpl	$0, karst_marks_slowly(%rip)
	jne	.Lslowly_\name
	movq	48(%rdi), %r8
	rorq	$17, %r8
	xorq	%fs:0x30, %r8
	leaq	8(%rsp), %rax
	cmpq	%rax, %r8
	jb	.Lslowly_\name
	shrq	$4, %r8
	shlq	$KARST_EVENT_TICK_SHIFT, %r8
	orq	$(KARST_EVENT_EXIT_BIT | KARST_MARK_PLACE), %r8		// r8: place
	movq	karst_libc + 8 * \number(%rip), %r11
	testq	%r11, %r11
	jz	.Lslowly_\name
	movq	karst_state@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx		// rcx: state
1:	movq	KARST_STATE_CURSOR(%rcx), %r9	// r9: slot
	movl	%r9d, %eax
	andl	$(KARST_BLOCK_SIZE - 1), %eax
	subl	$(KARST_BLOCK_SIZE - KARST_SLOT_BITS), %eax
	cmpl	$(KARST_SLOT_BITS - 16), %eax
	ja	.Lslowly_\name			// no slot, or not two of them
	rdtsc
	xorl	KARST_STATE_EPOCH(%rcx), %edx
	cmpl	$0xff, %edx
	ja	.Lslowly_\name			// another epoch needs another block
	shlq	$32, %rdx
	orq	%rax, %rdx
	shlq	$KARST_EVENT_TICK_SHIFT, %rdx
	orq	$(KARST_EVENT_EXIT_BIT | KARST_MARK_JUMPED), %rdx	// rdx: mark
	movq	%r9, %rax
	leaq	16(%r9), %r10
	cmpxchgq %r10, KARST_STATE_CURSOR(%rcx)
	jne	1b				// a signal handler took the slot
	movq	KARST_STATE_BEGIN(%rcx), %r10
	cmpq	%r10, %rdx
	jb	2f
	movq	%rdx, (%rax)
	movq	%r8, 8(%rax)
	jmp	*%r11
2:	orq	$(KARST_EVENT_EXIT_BIT | KARST_MARK_PAD), %r10	// late, as in hooks.S
	movq	%r10, (%rax)
	movq	%r10, 8(%rax)
	jmp	1b
	.cfi_endproc
.Lslowly_\name:
	.size	\name, . - \name
	NOTED	slowly_\name
	movq	%rdi, %rdx
	movl	$\number, %edi
	leaq	32(%rsp), %rsi
	call	karst_jumps
	GO_ON	slowly_\name
	.endm

	.hidden	karst_jumps
	JUMPS KARST_BEFORE(longjmp), kLongjmp
	JUMPS KARST_BEFORE(_longjmp), kLongjmpPlain
	JUMPS KARST_BEFORE(siglongjmp), kSiglongjmp
	JUMPS KARST_BEFORE(__longjmp_chk), kLongjmpChecked

	.hidden	karst_sets_place
	.hidden	karst_sets_context
	.hidden	karst_swaps_context
	.hidden	karst_vforked
	.hidden	karst_vforks

	SETS_PLACE KARST_BEFORE(setjmp), kSetjmp
	SETS_PLACE KARST_BEFORE(_setjmp), kSetjmpPlain
	SETS_PLACE KARST_BEFORE(__sigsetjmp), kSigsetjmp
	SETS_PLACE KARST_BEFORE(getcontext), kGetcontext

	.globl	KARST_BEFORE(setcontext)
	.balign	16
	NOTED	KARST_BEFORE(setcontext)
	leaq	32(%rsp), %rsi
	call	karst_sets_context
	GO_ON	KARST_BEFORE(setcontext)

	.globl	KARST_BEFORE(swapcontext)
	.balign	16
	NOTED	KARST_BEFORE(swapcontext)
	movq	%rsi, %rdi
	leaq	32(%rsp), %rsi
	call	karst_swaps_context
	GO_ON	KARST_BEFORE(swapcontext)

// vfork returns twice as well. Its child runs on this stack and may write over what lies above: the return address
// waits in a register, which a system call preserves. Made here rather than by libc's own, so that the parent comes by
// when it goes on.
	FUNCTION	vfork
	ALIGN
	leaq	16(%rsp), %rdi
	call	karst_vforks
	END_ALIGN
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rdi
	movl	$58, %eax			// SYS_vfork
	syscall
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rip, 0
	testq	%rax, %rax
	jz	1f				// the child
	movq	%rax, %rdi
	leaq	8(%rsp), %rsi
	ALIGN
	call	karst_vforked
	END_ALIGN
1:	ret
	FUNCTION_END	vfork

#ifdef KARST_STATIC
// What -u names, so that a static program has this object of libkarst.a. (vfork needs no --wrap: libc's is not called.)
	.globl	karst_static_ways_out
karst_static_ways_out:
#endif

	.section .note.GNU-stack, "", @progbits
