// SPDX-License-Identifier: MIT
// A thread or a process that libc knows nothing of (system/own_thread.h, system/own_process.h), and single-stepping.
//
// karst_make_thread(flags, top of its stack, tid, thread-local pointer, body): the first four are clone()'s, the word
// for the thread's id being that of CLONE_PARENT_SETTID and of CLONE_CHILD_CLEARTID. The new thread begins behind the
// system call with no frame above it; when `body` returns it ends alone, by exit and not exit_group.
#include <asm/unistd.h>

	.hidden	karst_make_thread
	.text
	.globl	karst_make_thread
	.type	karst_make_thread, @function
	.balign	16
karst_make_thread:
	.cfi_startproc
	endbr64
	movq	%r8, %r9		// r9: body; system calls keep it
	movq	%rcx, %r8		// thread-local pointer
	movq	%rdx, %r10		// tid, to be cleared
	movl	$__NR_clone, %eax
	syscall
	testq	%rax, %rax
	jz	1f
	ret
1:	.cfi_undefined rip
	xorl	%ebp, %ebp
	call	*%r9
	xorl	%edi, %edi
	movl	$__NR_exit, %eax
	syscall
	hlt
	.cfi_endproc
	.size	karst_make_thread, . - karst_make_thread

// What a handler of the kernel's returns to: its frame lies at the stack pointer.
	.hidden	karst_return_from_signal
	.globl	karst_return_from_signal
	.type	karst_return_from_signal, @function
	.balign	16
karst_return_from_signal:
	.cfi_startproc
	.cfi_signal_frame		// unwinders do not look one byte before
	.cfi_undefined %rip		// what it interrupts has no callers that matter
	movl	$__NR_rt_sigreturn, %eax
	syscall
	hlt
	.cfi_endproc
	.size	karst_return_from_signal, . - karst_return_from_signal

// The trap flag. In assembly, as compilers' frames are wrong between the two instructions that read the flags.
	.hidden	karst_stop_stepping
	.globl	karst_stop_stepping
	.type	karst_stop_stepping, @function
	.balign	16
karst_stop_stepping:
	.cfi_startproc
	endbr64
	pushfq
	.cfi_adjust_cfa_offset 8
	popq	%rax
	.cfi_adjust_cfa_offset -8
	andl	$0x100, %eax
	jz	1f
	shrl	$8, %eax
	pushfq
	.cfi_adjust_cfa_offset 8
	andq	$~0x100, (%rsp)
	popfq
	.cfi_adjust_cfa_offset -8
1:	ret
	.cfi_endproc
	.size	karst_stop_stepping, . - karst_stop_stepping

	.hidden	karst_go_on_stepping
	.globl	karst_go_on_stepping
	.type	karst_go_on_stepping, @function
	.balign	16
karst_go_on_stepping:
	.cfi_startproc
	endbr64
	pushfq
	.cfi_adjust_cfa_offset 8
	orq	$0x100, (%rsp)
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	karst_go_on_stepping, . - karst_go_on_stepping

	.section .note.GNU-stack, "", @progbits
