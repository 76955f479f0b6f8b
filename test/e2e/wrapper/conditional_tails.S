// What clang 14 to 18 write for conditional tail calls with -fxray-instrument, whichever clang is installed: for each
// condition and each form of the jump a function
//
//   uint64_t tail_CONDITION_FORM(uint64_t flags)
//
// which sets the flags and leaves by `jCONDITION landed`, else returns the flags that it has. landed returns the flags, or
// bit 63. Forms: long and short jump, and one with padding in front (Intel's jump erratum). All are in karst_tails, which
// a null pointer ends: address, number of the condition.
	.macro	RECORD sled, function, kind
	.section xray_instr_map, "ao", @progbits, .text
	.quad	\sled - .
	.quad	\function - .
	.byte	\kind, 0, 2
	.zero	13
	.text
	.endm
	.macro	SKIP
	.byte	0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00
	.endm

	.macro	FUNCTION number, cc, form
	.text
	.p2align 4, 0x90
	.globl	tail_\cc\()_\form
	.type	tail_\cc\()_\form, @function
tail_\cc\()_\form:
	.cfi_startproc
11:	SKIP
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	popfq
	.cfi_adjust_cfa_offset -8
	.p2align 1, 0x90
12:	SKIP
	.ifc	\form, long
	.byte	0x0f, 0x80 | \number
	.long	landed - . - 4
	.endif
	.ifc	\form, short
	.byte	0x70 | \number, 15f - . - 1
	.endif
	.ifc	\form, padded
	.byte	0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00, 0x90, 0x0f, 0x1f, 0x40, 0x00
	.byte	0x3e, 0x2e, 0x0f, 0x80 | \number
	.long	landed - . - 4
	.endif
	pushfq
	.cfi_adjust_cfa_offset 8
	popq	%rax
	.cfi_adjust_cfa_offset -8
	.p2align 1, 0x90
13:	.byte	0xc3, 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00
15:	jmp	landed
	.cfi_endproc
	.size	tail_\cc\()_\form, . - tail_\cc\()_\form
	RECORD	11b, 11b, 0
	RECORD	12b, 11b, 2
	RECORD	13b, 11b, 1
	.section .data.rel.ro, "aw"
	.quad	11b, \number
	.endm

	.text
	.p2align 4, 0x90
	.type	landed, @function
landed:
	.cfi_startproc
	pushfq
	.cfi_adjust_cfa_offset 8
	popq	%rax
	.cfi_adjust_cfa_offset -8
	btsq	$63, %rax
	ret
	.cfi_endproc
	.size	landed, . - landed

	.section .data.rel.ro, "aw"
	.balign	8
	.globl	karst_tails
karst_tails:
	.irp	form, long, short, padded
	FUNCTION 0, o, \form
	FUNCTION 1, no, \form
	FUNCTION 2, b, \form
	FUNCTION 3, ae, \form
	FUNCTION 4, e, \form
	FUNCTION 5, ne, \form
	FUNCTION 6, be, \form
	FUNCTION 7, a, \form
	FUNCTION 8, s, \form
	FUNCTION 9, ns, \form
	FUNCTION 10, p, \form
	FUNCTION 11, np, \form
	FUNCTION 12, l, \form
	FUNCTION 13, ge, \form
	FUNCTION 14, le, \form
	FUNCTION 15, g, \form
	.endr
	.section .data.rel.ro, "aw"
	.quad	0, 0
	.section .note.GNU-stack, "", @progbits
