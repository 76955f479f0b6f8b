// SPDX-License-Identifier: MIT
// syscall(), so that a filter of system calls that is installed by it is noticed (process/prctl.cc). All other numbers
// go on into libc's own with registers and stack as they came: it may be a fork.
//
// Entry state: 0(%rsp) return address; rdi number, arguments as of any function of C.
#include "arch/x86_64/function_macros.h"

	.text
	.hidden	karst_seccomp
	.hidden	karst_libc_syscall
	.hidden	karst_find_syscall
	FUNCTION	syscall
	cmpq	$317, %rdi			// SYS_seccomp
	je	karst_seccomp
	movq	karst_libc_syscall(%rip), %rax
	testq	%rax, %rax
	jz	1f
	jmp	*%rax
1:	SAVE	rdi, rsi, rdx, rcx, r8, r9	// before libkarst's constructors, if at all
	ALIGN
	call	karst_find_syscall
	END_ALIGN
	RESTORE	r9, r8, rcx, rdx, rsi, rdi
	jmp	*%rax
	FUNCTION_END	syscall

	.section .note.GNU-stack, "", @progbits
