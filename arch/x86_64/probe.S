// SPDX-License-Identifier: MIT
// The hook of probes (runtime/unbuilt/probes.h), in the middle of any function.
//
//   stub:   lea  -128(%rsp), %rsp     (below what the function may have there without having moved the stack pointer)
//           push number
//           push probes
//           call karst_hook_probe
//           lea  144(%rsp), %rsp
//
// Every general register is live, all of rflags, and every vector register, which karst_record_probe uses none of. The
// stack may have any alignment.
#include "format/patch_table.h"

	.hidden	karst_record_probe
	.text
	.globl	karst_hook_probe
	.hidden	karst_hook_probe
	.type	karst_hook_probe, @function
	.balign	64
karst_hook_probe:
	.cfi_startproc
	.cfi_def_cfa rsp, 8
	pushfq
	.cfi_adjust_cfa_offset 8
	.irp	register, r15, r14, r13, r12, rbx, rbp, r11, r10, r9, r8, rdi, rsi, rcx, rdx, rax
	pushq	%\register
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \register, 0
	.endr
	leaq	(16 * 8 + KARST_PROBE_PUSHED_BY_STUB + KARST_PROBE_RED_ZONE)(%rsp), %rax
	pushq	%rax				// the function's stack pointer: SavedProbe is whole
	.cfi_adjust_cfa_offset 8
	cld
	movq	%rsp, %rdi
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	andq	$-16, %rsp
	call	karst_record_probe
	movq	%rbp, %rsp
	.cfi_def_cfa_register rsp
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	.irp	register, rax, rdx, rcx, rsi, rdi, r8, r9, r10, r11, rbp, rbx, r12, r13, r14, r15
	popq	%\register
	.cfi_adjust_cfa_offset -8
	.cfi_restore \register
	.endr
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size	karst_hook_probe, . - karst_hook_probe
	.section .note.GNU-stack, "", @progbits
