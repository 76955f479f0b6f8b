// SPDX-License-Identifier: MIT
// Linked into every traced executable and shared library: the note of format/sled_note.h, and the constructor and
// destructor by which a module that comes later tells the runtime. Without the runtime both do nothing.
//
// With -DKARST_FINSTRUMENT: for modules that hold code made with -finstrument-functions; by clang: with
// -DKARST_NO_CLEANUPS as well.
#include "format/sled_note.h"

#if defined(KARST_FINSTRUMENT) && defined(KARST_NO_CLEANUPS)
#define FLAGS KARST_NOTE_FINSTRUMENT | KARST_NOTE_NO_CLEANUPS
#elif defined(KARST_FINSTRUMENT)
#define FLAGS KARST_NOTE_FINSTRUMENT
#else
#define FLAGS 0
#endif

// There are bounds only of sections that exist. Empty ones make them, in modules without sleds of that kind, too.
	.section karst_sleds, "aR", @progbits
	.balign	2
	.weak	__start_karst_sleds
	.weak	__stop_karst_sleds
	.hidden	__start_karst_sleds
	.hidden	__stop_karst_sleds
	.section xray_instr_map, "ao", @progbits, .text
	.weak	__start_xray_instr_map
	.weak	__stop_xray_instr_map
	.hidden	__start_xray_instr_map
	.hidden	__stop_xray_instr_map

	.section karst_clang_sleds, "ao", @progbits, .text
	.balign	2
	.weak	__start_karst_clang_sleds
	.weak	__stop_karst_clang_sleds
	.hidden	__start_karst_clang_sleds
	.hidden	__stop_karst_clang_sleds

	.section .note.karst, "a", @note
	.balign	4
.Lnote:
	.long	2f - 1f
	.long	4f - 3f
	.long	KARST_NOTE_TYPE
1:	.asciz	KARST_NOTE_NAME
2:	.balign	4
3:	.long	KARST_NOTE_VERSION
	.long	FLAGS
	.long	__start_karst_sleds - .
	.long	__stop_karst_sleds - .
	.long	__start_xray_instr_map - .
	.long	__stop_xray_instr_map - .
	.long	KARST_RUNTIME_VERSION
	.long	0
	.long	__start_karst_clang_sleds - .
	.long	__stop_karst_clang_sleds - .
4:

// Their frames are said to be a signal's, which changes nothing for who unwinds: they call nothing. Programs that are
// patched as they are loaded (patch/frames.h) leave such code alone.
	.weak	karst_register_module
	.weak	karst_unregister_module
	.weak	_r_debug
	.text
	.balign	16
	.type	.Lloaded, @function
.Lloaded:				// called with argc, argv, envp, which are not needed
	.cfi_startproc
	.cfi_signal_frame
	endbr64
	movq	karst_register_module@GOTPCREL(%rip), %rax
	leaq	.Lnote(%rip), %rdi
	movl	$1, %esi
	testq	%rax, %rax
	jz	.Lelsewhere
	jmpq	*%rax
	.cfi_endproc
	.size	.Lloaded, . - .Lloaded

	.type	.Lunloaded, @function
.Lunloaded:
	.cfi_startproc
	.cfi_signal_frame
	endbr64
	movq	karst_unregister_module@GOTPCREL(%rip), %rax
	leaq	.Lnote(%rip), %rdi
	xorl	%esi, %esi
	testq	%rax, %rax
	jz	.Lelsewhere
	jmpq	*%rax
	.cfi_endproc
	.size	.Lunloaded, . - .Lunloaded

// libkarst is not in this module's scope. If it is in the first namespace and this module in another one, it is among
// the modules that the dynamic linker shows to debuggers; its ELF entry point takes the note in rdi and 1 (loaded) or
// 0 (unloaded) in esi. (struct r_debug: r_map at 8; struct link_map: l_addr at 0, l_name at 8, l_next at 24.)
	.type	.Lelsewhere, @function
.Lelsewhere:
	.cfi_startproc
	.cfi_signal_frame
	movq	_r_debug@GOTPCREL(%rip), %rax
	testq	%rax, %rax
	jz	9f
	movq	8(%rax), %rax
	movabsq	$0x747372616b62696c, %r8	// "libkarst"
	jmp	2f
1:	movq	24(%rax), %rax			// rax: module
2:	testq	%rax, %rax
	jz	9f
	movq	8(%rax), %rcx
	testq	%rcx, %rcx
	jz	1b
	movq	%rcx, %rdx			// rdx: behind the last slash of its name
3:	movzbl	(%rcx), %r9d
	incq	%rcx
	cmpb	$'/', %r9b
	cmoveq	%rcx, %rdx
	testb	%r9b, %r9b
	jnz	3b
	subq	%rdx, %rcx			// rcx: length of the last part, with its end
	cmpq	$12, %rcx			// "libkarst.so" at least
	jb	1b
	cmpq	%r8, (%rdx)
	jne	1b
	cmpl	$0x006f732e, 8(%rdx)		// ".so"
	je	4f
	cmpl	$0x2e6f732e, 8(%rdx)		// ".so."
	jne	1b
4:	movq	(%rax), %rax			// its ELF header
	movq	24(%rax), %rcx			// e_entry
	testq	%rcx, %rcx
	jz	9f
	addq	%rcx, %rax
	jmpq	*%rax
9:	ret
	.cfi_endproc
	.size	.Lelsewhere, . - .Lelsewhere

	.section KARST_UNTRACED_SECTION, "R", @progbits
	.balign	8
	.quad	.Lloaded, .Lunloaded, .Lelsewhere
	.section .init_array.00001, "aw", @init_array
	.balign	8
	.quad	.Lloaded
	.section .fini_array.00001, "aw", @fini_array
	.balign	8
	.quad	.Lunloaded
	.section .note.GNU-stack, "", @progbits
