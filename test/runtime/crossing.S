// karst_test_cross(target): loads every register from karst_test_before, calls `target` as a patched sled would, and
// stores every register to karst_test_after. Not reentrant; one thread at a time.
//
// karst_test_before and karst_test_after (test/runtime/crossing.h): 16 general registers in the order of their numbers,
// rflags, and from 192 on an XSAVE area. karst_test_shift moves the stack by as many bytes, so that both alignments that a
// sled can meet are seen.
#define AREA 192

	.macro	EACH what
	\what	rax, 0
	\what	rcx, 8
	\what	rdx, 16
	\what	rbx, 24
	\what	rbp, 40
	\what	rsi, 48
	\what	rdi, 56
	\what	r8, 64
	\what	r9, 72
	\what	r10, 80
	\what	r11, 88
	\what	r12, 96
	\what	r13, 104
	\what	r14, 112
	\what	r15, 120
	.endm
	.macro	LOAD reg, at
	movq	karst_test_before+\at(%rip), %\reg
	.endm
	.macro	STORE reg, at
	movq	%\reg, karst_test_after+\at(%rip)
	.endm

	.text
	.globl	karst_test_cross
	.type	karst_test_cross, @function
karst_test_cross:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rdi, target(%rip)
	movl	karst_test_mask(%rip), %eax
	xorl	%edx, %edx
	xsave	own(%rip)			// the vector state of the test program itself
	movq	%rsp, own_stack(%rip)
	subq	karst_test_shift(%rip), %rsp
	movl	karst_test_mask(%rip), %eax
	xorl	%edx, %edx
	xrstor	karst_test_before+AREA(%rip)
	movq	%rsp, karst_test_before+32(%rip)
	pushq	karst_test_before+128(%rip)
	popfq
	EACH	LOAD
	call	*target(%rip)
	EACH	STORE
	movq	%rsp, karst_test_after+32(%rip)
	pushfq
	popq	karst_test_after+128(%rip)
	cld
	movl	karst_test_mask(%rip), %eax
	xorl	%edx, %edx
	xsave	karst_test_after+AREA(%rip)
	movl	karst_test_mask(%rip), %eax
	xorl	%edx, %edx
	xrstor	own(%rip)
	movq	own_stack(%rip), %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret
	.size	karst_test_cross, . - karst_test_cross

// int karst_test_call(hook, function): calls hook(function, 0) as a function of C; 1 if all registers that such a one must
// preserve come back.
	.globl	karst_test_call
	.type	karst_test_call, @function
karst_test_call:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	subq	$8, %rsp
	movq	%rsp, own_stack(%rip)
	movq	%rdi, %rax
	movq	%rsi, %rdi
	xorl	%esi, %esi
	movq	$0x1111, %rbx
	movq	$0x2222, %rbp
	movq	$0x3333, %r12
	movq	$0x4444, %r13
	movq	$0x5555, %r14
	movq	$0x6666, %r15
	call	*%rax
	xorl	%eax, %eax
	cmpq	own_stack(%rip), %rsp
	jne	1f
	cmpq	$0x1111, %rbx
	jne	1f
	cmpq	$0x2222, %rbp
	jne	1f
	cmpq	$0x3333, %r12
	jne	1f
	cmpq	$0x4444, %r13
	jne	1f
	cmpq	$0x5555, %r14
	jne	1f
	cmpq	$0x6666, %r15
	jne	1f
	incl	%eax
1:	movq	own_stack(%rip), %rsp
	addq	$8, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret
	.size	karst_test_call, . - karst_test_call

// Hooks that break the contract, each in one register: they show that the test sees it.
	.macro	BREAKS name, instruction:vararg
	.globl	karst_test_breaks_\name
karst_test_breaks_\name:
	\instruction
	leaq	8(%rsp), %rsp
	ret
	.endm
	BREAKS	rax, incb %al
	BREAKS	r10, incq %r10
	BREAKS	rbp, incq %rbp
	BREAKS	xmm15, pxor %xmm15, %xmm15
	BREAKS	ymm_upper, vzeroupper
	BREAKS	x87, ffree %st(3)
	BREAKS	direction, std
	.globl	karst_test_breaks_carry
karst_test_breaks_carry:
	leaq	8(%rsp), %rsp
	cmc
	ret
	.globl	karst_test_breaks_overflow
karst_test_breaks_overflow:
	leaq	8(%rsp), %rsp
	pushfq
	xorl	$0x800, (%rsp)
	popfq
	ret
	.globl	karst_test_breaks_mxcsr
karst_test_breaks_mxcsr:
	movl	$0x1f80, -8(%rsp)
	ldmxcsr	-8(%rsp)
	leaq	8(%rsp), %rsp
	ret
	.globl	karst_test_breaks_control_word
karst_test_breaks_control_word:
	movw	$0x037f, -8(%rsp)
	fldcw	-8(%rsp)
	leaq	8(%rsp), %rsp
	ret

	.local	target
	.comm	target, 8, 8
	.local	own_stack
	.comm	own_stack, 8, 8
	.local	own
	.comm	own, 8192, 64
	.section .note.GNU-stack, "", @progbits
