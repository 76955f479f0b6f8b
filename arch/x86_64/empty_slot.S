// SPDX-License-Identifier: MIT
// bool karst_has_empty_slot(const Event* slots, std::uint32_t count): one of them is 0. Run for every block that is
// left where nobody tells of signal handlers (runtime/recording/interruptions.h), so it looks at two slots at a time:
// with general registers alone it was a fortieth of a call's cost.
//
// An event's lower half is never 0, as there is no function 0, so its half says whether a slot is empty. `slots` is
// at a multiple of 16 bytes. The vector registers that it uses are the program's, and get their contents back; those
// instructions of SSE2 leave the upper halves of wider registers alone.
	.text
	.globl	karst_has_empty_slot
	.hidden	karst_has_empty_slot
	.type	karst_has_empty_slot, @function
	.balign	64
karst_has_empty_slot:
	.cfi_startproc
	subq	$64, %rsp			// handlers' stacks may be short: few registers
	.cfi_adjust_cfa_offset 64
	movdqu	%xmm0, (%rsp)
	movdqu	%xmm1, 16(%rsp)
	movdqu	%xmm2, 32(%rsp)
	movdqu	%xmm3, 48(%rsp)
	pxor	%xmm0, %xmm0			// zero
	pxor	%xmm1, %xmm1			// all ones in each half of a slot that was 0
	movl	%esi, %ecx
	shrl	$3, %ecx
	jz	2f
1:	movdqa	(%rdi), %xmm2
	movdqa	16(%rdi), %xmm3
	pcmpeqd	%xmm0, %xmm2
	pcmpeqd	%xmm0, %xmm3
	por	%xmm3, %xmm2
	por	%xmm2, %xmm1
	movdqa	32(%rdi), %xmm2
	movdqa	48(%rdi), %xmm3
	pcmpeqd	%xmm0, %xmm2
	pcmpeqd	%xmm0, %xmm3
	por	%xmm3, %xmm2
	por	%xmm2, %xmm1
	addq	$64, %rdi
	decl	%ecx
	jnz	1b
2:	pmovmskb %xmm1, %eax
	andl	$0x0f0f, %eax			// the lower halves
	andl	$7, %esi
	jz	4f
3:	cmpl	$1, (%rdi)
	adcl	$0, %eax
	addq	$8, %rdi
	decl	%esi
	jnz	3b
4:	testl	%eax, %eax
	setnz	%al
	movdqu	(%rsp), %xmm0
	movdqu	16(%rsp), %xmm1
	movdqu	32(%rsp), %xmm2
	movdqu	48(%rsp), %xmm3
	addq	$64, %rsp
	.cfi_adjust_cfa_offset -64
	ret
	.cfi_endproc
	.size	karst_has_empty_slot, . - karst_has_empty_slot

	.section .note.GNU-stack, "", @progbits
