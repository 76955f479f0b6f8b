// syscall(), so that a filter of system calls that is installed by it is noticed (process/prctl.cc). All other numbers
// go on into libc's own with registers and stack as they came: it may be a fork.
//
// Entry state: 0(%rsp) return address; rdi number, arguments as of any function of C.
	.text
	.hidden	karst_seccomp
	.hidden	karst_libc_syscall
	.hidden	karst_find_syscall
	.globl	syscall
	.type	syscall, @function
	.balign	16
syscall:
	.cfi_startproc
	endbr64
	cmpq	$317, %rdi			// SYS_seccomp
	je	karst_seccomp
	movq	karst_libc_syscall(%rip), %rax
	testq	%rax, %rax
	jz	1f
	jmp	*%rax
1:	pushq	%rdi				// before libkarst's constructors, if at all
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	karst_find_syscall
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r9
	.cfi_adjust_cfa_offset -8
	popq	%r8
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*%rax
	.cfi_endproc
	.size	syscall, . - syscall

	.section .note.GNU-stack, "", @progbits
