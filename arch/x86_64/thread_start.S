// SPDX-License-Identifier: MIT
// Where threads begin that pthread_create makes (ways_out/threads.cc): the one frame below all calls of the thread. Its
// personality routine is called when a forced unwind (pthread_exit, pthread_cancel) has passed all of them.
//
// Entry state: rdi the thread's Start. In the frame: 0(%rsp) the program's function, 8(%rsp) its argument.

	.hidden	karst_thread_begins
	.hidden	karst_thread_personality
	.hidden	karst_thread_start
	.text
	.globl	karst_thread_start
	.type	karst_thread_start, @function
	.balign	16
karst_thread_start:
	.cfi_startproc
	.cfi_personality 0x1b, karst_thread_personality	// pcrel | sdata4
	endbr64
	subq	$24, %rsp
	.cfi_adjust_cfa_offset 24
	movq	%rsp, %rsi
	call	karst_thread_begins
	movq	8(%rsp), %rdi
	call	*(%rsp)
	addq	$24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
	.cfi_endproc
	.size	karst_thread_start, . - karst_thread_start

	.section .note.GNU-stack, "", @progbits
