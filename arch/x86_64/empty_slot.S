// bool karst_has_empty_slot(const Event* slots, std::uint32_t count): one of them is 0. Run for every block that is
// left, so it looks at two slots at a time: with general registers alone it was a fortieth of a call's cost.
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
	subq	$96, %rsp
	.cfi_adjust_cfa_offset 96
	movdqu	%xmm0, (%rsp)
	movdqu	%xmm1, 16(%rsp)
	movdqu	%xmm2, 32(%rsp)
	movdqu	%xmm3, 48(%rsp)
	movdqu	%xmm4, 64(%rsp)
	movdqu	%xmm5, 80(%rsp)
	pxor	%xmm0, %xmm0			// zero
	pxor	%xmm1, %xmm1			// all ones in each half of a slot that was 0
	movl	%esi, %ecx
	shrl	$3, %ecx
	jz	2f
1:	movdqa	(%rdi), %xmm2
	movdqa	16(%rdi), %xmm3
	movdqa	32(%rdi), %xmm4
	movdqa	48(%rdi), %xmm5
	pcmpeqd	%xmm0, %xmm2
	pcmpeqd	%xmm0, %xmm3
	pcmpeqd	%xmm0, %xmm4
	pcmpeqd	%xmm0, %xmm5
	por	%xmm3, %xmm2
	por	%xmm5, %xmm4
	por	%xmm2, %xmm1
	por	%xmm4, %xmm1
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
	movdqu	64(%rsp), %xmm4
	movdqu	80(%rsp), %xmm5
	addq	$96, %rsp
	.cfi_adjust_cfa_offset -96
	ret
	.cfi_endproc
	.size	karst_has_empty_slot, . - karst_has_empty_slot

	.section .note.GNU-stack, "", @progbits
