// Functions that start another program: each tells the session which (hooks/exec.cc) and goes on into libc's own with all
// arguments as they came, those on the stack among them.
//
// Entry state: 0(%rsp) return address; arguments as of any function of C; al as of a variadic one.

	.hidden	karst_starts_program
	.text
	.macro	SAVE reg
	pushq	%\reg
	.cfi_adjust_cfa_offset 8
	.endm
	.macro	RESTORE reg
	popq	%\reg
	.cfi_adjust_cfa_offset -8
	.endm
	.macro	STARTS name, number		// number: Function in hooks/exec.cc
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	endbr64
	SAVE	rax
	SAVE	rdi
	SAVE	rsi
	SAVE	rdx
	SAVE	rcx
	SAVE	r8
	SAVE	r9
	movl	$\number, %edx
	call	karst_starts_program
	movq	%rax, %r11
	RESTORE	r9
	RESTORE	r8
	RESTORE	rcx
	RESTORE	rdx
	RESTORE	rsi
	RESTORE	rdi
	RESTORE	rax
	jmp	*%r11
	.cfi_endproc
	.size	\name, . - \name
	.endm

	STARTS execve, 0
	STARTS execv, 1
	STARTS execvp, 2
	STARTS execvpe, 3
	STARTS execl, 4
	STARTS execle, 5
	STARTS execlp, 6
	STARTS fexecve, 7
	STARTS posix_spawn, 8
	STARTS posix_spawnp, 9

	.section .note.GNU-stack, "", @progbits
