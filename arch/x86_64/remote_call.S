// SPDX-License-Identifier: MIT
// The code that karst has another process execute (arch/remote_call.h). It is copied, so it refers to nothing but
// itself and the RemoteCall behind it.
//
// Entry: any instruction of the thread, which has nothing changed but rip (and orig_rax, which no program sees).
//
//   thread's stack   | red zone, 128 bytes | flags, 15 registers | a sigaction | pending signals |
//   own stack, mmap  | ... calls ... | xsave's area | RemoteResult |
//
// Signals stay blocked from the first system call to the last, and before it if karst lives: no handler runs on the
// stack of our own, and none can leave it by a jump. A signal that came meanwhile is delivered when the mask is set
// back. The thread's system call then ends with EINTR, where it would have.
#include <asm/unistd.h>

#define RESUME_IP	0
#define RESUME_AX	8
#define INTERRUPTED_IP	16
#define INTERRUPTED_AX	24
#define STACK		32
#define STACK_SIZE	40
#define FUNCTION	48
#define PROBLEM		56
#define ERROR_NUMBER	64
#define VECTORS_SIZE	72
#define ALL_SIGNALS	80
#define CONTROL		88
#define MASK		96
#define CAUGHT		104
#define MAY_RESTART	112
#define ARGUMENT	120

#define ACTION_FLAGS	8	// of the kernel's struct sigaction, which has 32 bytes
#define RESTART		0x10000000	// SA_RESTART
#define PENDING		32	// above rsp
#define ROOM		48

#define RESULT_SIZE		1024
#define RESULT_HANDLE		0
#define RESULT_ERROR_NUMBER	8
#define RESULT_ERROR_PLACE	16
#define RESULT_MESSAGE		24
#define MESSAGE_SIZE		1000

#define SAVED_AX	112	// of the registers, above rsp after the last push

	.macro	leave ip
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rbp
	popq	%rbx
	popq	%rdx
	popq	%rcx
	popq	%rax
	popfq
	leaq	128(%rsp), %rsp
	jmp	*(karst_remote_call_end + \ip)(%rip)
	.endm

	.section .rodata
	.hidden	karst_remote_call
	.hidden	karst_remote_call_end
	.globl	karst_remote_call
	.globl	karst_remote_call_end
	.balign	16
karst_remote_call:
	leaq	-128(%rsp), %rsp
	pushfq
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rbx
	pushq	%rbp
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	cld
	movq	%rsp, %rbx		// rbx: the thread's stack
	leaq	karst_remote_call_end(%rip), %rbp	// rbp: the RemoteCall
	subq	$ROOM, %rsp

	movl	$__NR_rt_sigprocmask, %eax
	movl	$2, %edi		// SIG_SETMASK
	leaq	ALL_SIGNALS(%rbp), %rsi
	xorl	%edx, %edx
	movl	$8, %r10d
	syscall

	movl	$__NR_mmap, %eax
	movq	STACK(%rbp), %rdi
	movq	STACK_SIZE(%rbp), %rsi
	movl	$3, %edx		// PROT_READ | PROT_WRITE
	movl	$0x100022, %r10d	// MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE
	movq	$-1, %r8
	xorl	%r9d, %r9d
	syscall
	xorl	%r12d, %r12d		// r12: how much is to be taken away; nothing yet
	cmpq	STACK(%rbp), %rax
	jne	.Lgive_back
	movq	STACK_SIZE(%rbp), %r12

	leaq	-RESULT_SIZE(%rax, %r12), %r13	// r13: the RemoteResult
	movq	%r13, %rsp
	subq	VECTORS_SIZE(%rbp), %rsp
	andq	$-64, %rsp
	movq	%rsp, %r14		// r14: the vectors, whose header is zero as the memory is new
	movl	$-1, %eax
	movl	$-1, %edx
	xsave64	(%r14)
	fninit
	ldmxcsr	CONTROL(%rbp)

	call	*ERROR_NUMBER(%rbp)
	movq	%rax, RESULT_ERROR_PLACE(%r13)
	movl	(%rax), %ecx
	movq	%rcx, RESULT_ERROR_NUMBER(%r13)
	leaq	ARGUMENT(%rbp), %rdi
	movl	$2, %esi		// RTLD_NOW
	xorl	%eax, %eax
	call	*FUNCTION(%rbp)
	movq	%rax, RESULT_HANDLE(%r13)
	testq	%rax, %rax
	jnz	.Lreturned
	call	*PROBLEM(%rbp)
	testq	%rax, %rax
	jz	.Lreturned
	xorl	%ecx, %ecx
.Lcopy:
	movb	(%rax, %rcx), %dl
	movb	%dl, RESULT_MESSAGE(%r13, %rcx)
	testb	%dl, %dl
	jz	.Lreturned
	incl	%ecx
	cmpl	$(MESSAGE_SIZE - 1), %ecx
	jb	.Lcopy
.Lreturned:
	movq	RESULT_ERROR_PLACE(%r13), %rax
	movq	RESULT_ERROR_NUMBER(%r13), %rcx
	movl	%ecx, (%rax)
	movl	$-1, %eax
	movl	$-1, %edx
	xrstor64 (%r14)
	leaq	-ROOM(%rbx), %rsp

.Lgive_back:				// karst looks at the result before this call; of 0 bytes it does nothing
	movl	$__NR_munmap, %eax
	movq	STACK(%rbp), %rdi
	movq	%r12, %rsi
	syscall

	movl	$__NR_rt_sigpending, %eax
	leaq	PENDING(%rsp), %rdi
	movl	$8, %esi
	syscall
	movq	MASK(%rbp), %r12
	notq	%r12
	andq	PENDING(%rsp), %r12
	andq	CAUGHT(%rbp), %r12	// r12: signals whose handlers run after the last call
	jz	.Lset_back
	cmpq	$0, MAY_RESTART(%rbp)
	je	.Lset_back
	movl	$__NR_rt_sigaction, %eax
	bsfq	%r12, %rdi		// the first of them decides
	incl	%edi
	xorl	%esi, %esi
	movq	%rsp, %rdx
	movl	$8, %r10d
	syscall
	testl	%eax, %eax
	jnz	.Lset_back
	testl	$RESTART, ACTION_FLAGS(%rsp)
	jz	.Lset_back
	xorl	%r12d, %r12d
.Lset_back:
	movl	$__NR_rt_sigprocmask, %eax
	movl	$2, %edi
	leaq	MASK(%rbp), %rsi
	xorl	%edx, %edx
	movl	$8, %r10d
	syscall

	movq	%rbx, %rsp
	testq	%r12, %r12
	jnz	.Linterrupted
	movq	RESUME_AX(%rbp), %rax
	movq	%rax, SAVED_AX(%rsp)
	leave	RESUME_IP
.Linterrupted:
	movq	INTERRUPTED_AX(%rbp), %rax
	movq	%rax, SAVED_AX(%rsp)
	leave	INTERRUPTED_IP
	.balign	8
karst_remote_call_end:

	.section .note.GNU-stack, "", @progbits
