// SPDX-License-Identifier: MIT
// Tail calls that last until their callee returns: the hook calls in place of the jump.
//
//   sled:        call trampoline                       (in front of `jmp callee`)
//   trampoline:  call *slot(%rip)                      (karst_hook_tail, or karst_hook_tail_left)
//                jc   the exit trampoline of the function's id for calls that were left
//                ret
//
// karst_hook_tail puts a frame between the function's return address and the callee, and lets the jump be executed. The
// callee returns into karst_tail_frame. That calls the exit trampoline of the function's id for calls that have returned
// (kArenaFunctionTailReturn), as a sled at the same place of the stack would, and goes back to the function's caller.
// At the callee's entry every register is as the function left it, but for rsp and rbp, and the stack is aligned as it
// was. No argument may lie on the stack: sleds of this kind are for such calls alone (format/sled_note.h).
//
//    A      return address of the function          A: rsp at the sled
//    A-8    rbp of the caller                       <- rbp: whoever walks frames by rbp finds this one
//    A-16   frames in a row, this one included; the thread's count before it (4 bytes each)
//    A-24   the exit trampoline
//    A-56   nothing: callees by Microsoft's convention (ms_abi) may write over the 32 bytes above their return address
//    A-64   where the callee returns to: the address in karst_tail_frame
//
// All of it lies on the stack itself, so it goes along when stacks are switched, copied or unwound.
//
// Where tail calls follow one another the stack must not grow without bound. Behind KARST_TAIL_MOST_IN_A_ROW frames, or
// with KARST_TAIL_MOST of them in a thread, the hook sets the carry flag: the call is recorded as left, and the function
// jumps as it does untraced.
//
// The processor predicts every return but the callee's, which goes elsewhere than the last call on record came from. The
// jump at the end keeps that record right for the returns that follow.
#include "arch/x86_64/hook_macros.h"
#include "runtime/modules/tail_frames.h"

// From where the hook returns to in the trampoline, behind its call, to the exit trampoline behind it.
#define KARST_TAIL_EXIT_BEHIND 10

	.hidden	karst_tail_state
	.type	karst_tail_state, @tls_object
	.text

// Budget: 45 instructions from here to the jump in the function (checked by a test).
	HOOK	karst_hook_tail			// 0(%rsp): in the trampoline. 8(%rsp): the jump. 16(%rsp): A
	leaq	-64(%rsp), %rsp			// rsp: A-80
	.cfi_adjust_cfa_offset 64
	PUSH_SOME				// rsp: A-112
	movq	karst_tail_state@gottpoff(%rip), %rcx
	leaq	.Lkarst_tail_return(%rip), %rsi
	xorl	%eax, %eax			// eax: frames in a row
	cmpq	112(%rsp), %rsi
	jne	1f
	movl	160(%rsp), %eax			// the function was called so itself
	cmpl	$KARST_TAIL_MOST_IN_A_ROW, %eax
	jae	4f
1:	leaq	112(%rsp), %rsi			// rsi: A
	movl	%fs:KARST_TAILS_COUNT(%rcx), %edx
	testl	%edx, %edx
	jz	2f
	cmpl	%fs:KARST_TAILS_FIRST(%rcx), %esi
	jae	2f				// the first one has gone without coming back
	cmpl	$KARST_TAIL_MOST, %edx
	jb	3f
	jmp	4f
2:	xorl	%edx, %edx
	movl	%esi, %fs:KARST_TAILS_FIRST(%rcx)
3:	.cfi_remember_state
	movq	104(%rsp), %rsi
	movq	%rsi, 40(%rsp)			// A-72: the jump
	.cfi_offset rip, -72
	movq	%rbp, 104(%rsp)
	movq	96(%rsp), %rsi
	movq	%rsi, 32(%rsp)			// A-80: in the trampoline
	addq	$KARST_TAIL_EXIT_BEHIND, %rsi
	movq	%rsi, 88(%rsp)
	incl	%eax
	movl	%eax, 96(%rsp)
	movl	%edx, 100(%rsp)
	incl	%edx
	movl	%edx, %fs:KARST_TAILS_COUNT(%rcx)
	leaq	.Lkarst_tail_return(%rip), %rsi
	movq	%rsi, 48(%rsp)
	.cfi_adjust_cfa_offset -64		// from here on the function has the new frame above it
	.cfi_offset rip, -8
	.cfi_rel_offset rax, 24
	.cfi_rel_offset rdx, 16
	.cfi_rel_offset rcx, 8
	.cfi_rel_offset rsi, 0
	leaq	104(%rsp), %rbp
	POP_SOME
	clc
	ret
4:	.cfi_restore_state
	POP_SOME
	leaq	64(%rsp), %rsp
	.cfi_adjust_cfa_offset -64
	stc
	ret
	HOOK_END karst_hook_tail

// Where nothing may be put on the stack: threads that have no thread-local storage of their own, forked children.
	HOOK	karst_hook_tail_left
	stc
	ret
	HOOK_END karst_hook_tail_left

	.globl	karst_tail_frame
	.hidden	karst_tail_frame
	.type	karst_tail_frame, @function
	.balign	64
karst_tail_frame:
	.cfi_startproc
	.cfi_def_cfa_offset 64
	.cfi_offset rbp, -16
	nop					// unwinders look at the byte before a return address
.Lkarst_tail_return:				// rsp: A-56
	movl	44(%rsp), %ebp
	PUSH	rcx
	movq	karst_tail_state@gottpoff(%rip), %rcx
	movl	%ebp, %fs:KARST_TAILS_COUNT(%rcx)
	POP	rcx
	movq	48(%rsp), %rbp
	.cfi_same_value rbp
	leaq	56(%rsp), %rsp			// A. What lies below is safe from signal handlers for 128 bytes
	.cfi_adjust_cfa_offset -56
	call	*-24(%rsp)
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	notrack jmp *-8(%rsp)
	.cfi_endproc
	.size	karst_tail_frame, . - karst_tail_frame

	.section .note.GNU-stack, "", @progbits
