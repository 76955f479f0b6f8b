// As clang makes a switch of 256 values that needs no bound: some cases are the `ret` of another one, to which only the
// table leads. With -DABSOLUTE the table has addresses, as code at a fixed address may have it.
	.text
	.globl	size_of
	.type	size_of, @function
size_of:
	.cfi_startproc
	movb	(%rdi), %cl
	xorl	%edx, %edx
	movl	$1, %eax
	addb	$-128, %cl
	movzbl	%cl, %ecx
#ifdef ABSOLUTE
	jmp	*table(, %rcx, 8)
#else
	leaq	table(%rip), %rsi
	movslq	(%rsi, %rcx, 4), %rcx
	addq	%rsi, %rcx
	jmp	*%rcx
#endif
	.altmacro
	.macro	case number
L\number:
	movl	$\number + 2, %eax
	ret
	.endm
	.set	i, 0
	.rept	20
	case	%i
	.set	i, i + 1
	.endr
zero:	xorl	%eax, %eax
	xorl	%edx, %edx
one:	ret
	.rept	20
	case	%i
	.set	i, i + 1
	.endr
	.cfi_endproc
	.size	size_of, . - size_of

	.section .rodata
	.balign	8
	.macro	entry to
#ifdef ABSOLUTE
	.quad	\to
#else
	.long	\to - table
#endif
	.endm
	.macro	value number
	entry	L\number
	.endm
table:
	.set	i, 0
	.rept	256
	.if	i == 130 || i == 143
	entry	one
	.elseif	i == 131
	entry	zero
	.else
	.set	n, i % 40
	value	%n
	.endif
	.set	i, i + 1
	.endr
	.section .note.GNU-stack, "", @progbits
