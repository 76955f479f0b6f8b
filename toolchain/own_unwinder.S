// SPDX-License-Identifier: MIT
// Linked into modules that have an unwinder of their own inside (-static, -static-libgcc), with --wrap=_Unwind_SetIP: where
// execution goes on after a throw is said to that unwinder here, and told to libkarst, if it is there, which asks the
// same unwinder which calls are gone (runtime/ways_out/unwind.cc). All references are weak: nothing is linked in for them.

	.weak	__real__Unwind_SetIP
	.weak	_Unwind_SetIP
	.weak	_Unwind_GetCFA
	.weak	_Unwind_GetRegionStart
	.weak	_Unwind_GetLanguageSpecificData
	.weak	_Unwind_Backtrace
	.weak	karst_frames_gone
	.text
	.globl	__wrap__Unwind_SetIP
	.hidden	__wrap__Unwind_SetIP
	.type	__wrap__Unwind_SetIP, @function
	.balign	16
__wrap__Unwind_SetIP:			// rdi: context, rsi: address
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	call	*__real__Unwind_SetIP@GOTPCREL(%rip)
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	movq	karst_frames_gone@GOTPCREL(%rip), %rax
	leaq	.Lunwinder(%rip), %rsi
	testq	%rax, %rax
	jz	1f
	jmpq	*%rax
1:	ret
	.cfi_endproc
	.size	__wrap__Unwind_SetIP, . - __wrap__Unwind_SetIP

	.section .data.rel.ro, "aw", @progbits
	.balign	8
.Lunwinder:				// Unwinder in runtime/ways_out/ways_out.h
	.quad	__real__Unwind_SetIP
	.quad	_Unwind_GetCFA
	.quad	_Unwind_GetRegionStart
	.quad	_Unwind_GetLanguageSpecificData
	.quad	_Unwind_Backtrace
	.section .note.GNU-stack, "", @progbits
