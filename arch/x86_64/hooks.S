// SPDX-License-Identifier: MIT
// The hooks: what a patched sled calls, by way of its function's trampoline.
//
//   sled:        call trampoline
//   trampoline:  push $event_low_bits      (id, and the exit bit in an exit trampoline)
//                jmp  *slot(%rip)          (one of the hooks below)
//
// Entry state of every hook:   0(%rsp) event's low 24 bits    8(%rsp) return address, behind the sled
// A hook returns by `ret`, so calls and returns stay paired for the CPU.
//
// What is live at a sled, beside the stack and what every function preserves:
//
//   sled                                   registers                                            arithmetic flags
//   gcc's and clang's entry                arguments: general, vector, al (variadic), r10       no
//   gcc's and clang's return               values: rax, rdx, xmm0, xmm1, st0, st1               no: `ret` reads none
//   gcc's and clang's jump (tail call)     arguments of the next function, its address          no: `jmp` reads none
//   clang's conditional tail call          arguments of the next function                       yes
//   a late entry (kPatchSledLate)          all                                                  yes
//   __cyg_profile_func_enter and _exit     none: they are functions of C                        no
//
// Calling conventions of their own (preserve_most, regcall, no_caller_saved_registers, -fipa-ra) make more registers
// live at entries and returns, but never flags; where assembly that was not built for Karst has those live, it is not
// patched (patch/places.h). So every hook preserves every register, and all of rflags but the six
// arithmetic flags; no x87 register is touched, and vector registers are by empty_slot.S alone, which gives them back.
// karst_hook_keep_flags, for conditional tail calls, preserves those flags as well.
// (test/runtime/register_contract_test.cc; what the compilers make: test/e2e/wrapper_flags.py)
#include "arch/x86_64/hook_macros.h"

	.hidden	karst_record_by_tid
	.hidden	karst_min_duration
	.hidden	karst_functions
	.hidden	karst_count_slowly
	.hidden	karst_count_by_tid
	.text

// karst_hook_trace: records one event. Budget: 30 instructions from here to ret (checked by a test).
// karst_hook_trace_clock: the same by the clock thread's time (clock/clock.h). Budget: 26 instructions.
//
// A signal handler may interrupt it anywhere and run hooks itself. The slot is taken by one addition in memory, which
// handlers cannot come between, and which costs a fraction of a cmpxchg, as the processor passes the sum on to the next
// event's addition without waiting for either. Afterwards the cursor shows whether a handler has recorded events since it
// was read. If not, the slot is the one in mind; until it is written it reads as zero, and handlers use those behind it.
// If so, a slot was taken nevertheless: behind the handler's it is given back, before them it gets a pad
// (recording/claimed_slot.cc). The event is stamped anew and comes after them.
//
// A handler that records much may fill all memory, this block again included, and stop where the cursor was read: then
// the cursor is as it should be and the stamp is older than the handler's events. But the block has begun anew since, later
// than the stamp. So its begin is looked at when the slot is taken and the block cannot change hands any more
// (format/arena.h: holes); a slot that is taken so gets a pad, and the event is stamped anew.
	HOOK	karst_hook_trace
	PUSH_SOME
	RECORD	tsc, 32, 2f, 3f, 4f
	.cfi_remember_state
	RETURN
2:	.cfi_restore_state
	GO_SLOWLY 1b
3:	FILL	-8(%rsi)
	jmp	1b
4:	GIVE_UP 1b
	HOOK_END karst_hook_trace

	HOOK	karst_hook_trace_clock
	PUSH_FEW
	RECORD	clock, 24, 2f, 3f, 4f
	.cfi_remember_state
	RETURN_FEW
2:	.cfi_restore_state
	GO_SLOWLY 1b, FEW
3:	FILL	-8(%rsi)
	jmp	1b
4:	GIVE_UP 1b, FEW
	HOOK_END karst_hook_trace_clock

// karst_hook_trim: an exit under --min-duration. When the slot before its own has the enter of the same call, and that
// is not long ago, the call was short and has nothing in it: the enter is taken back, and nothing recorded.
// Budget: 43 instructions for such a call.
// karst_hook_trim_clock: the same by the clock thread's time. Budget: 41 instructions.
//
// The exit's slot is taken first. It is zero until the end, and handlers use the slots behind it; so this block cannot
// change hands meanwhile, however much they record (a block with a hole is spared, format/arena.h), and the enter's slot
// stays this call's. Only then is the enter cleared; the cursor goes back over both slots in one step, unless a handler
// has recorded something: then the call stays as it was, for the reader to leave out. If a handler jumps out of here, what
// it leaves is an enter without an exit, or nothing of the call, whose end it was.
	.macro	TRIM name, clock
	HOOK	\name
	PUSH_SOME
	STATE
1:	movq	KARST_STATE_CURSOR(%rcx), %rsi
	testl	$KARST_SLOT_BITS, %esi
	jz	2f
	STAMP	\clock, 32, 2f			// rdx: exit
	movq	%rsi, %rax			// rax: its slot
	addq	$8, %rsi
	cmpxchgq %rsi, KARST_STATE_CURSOR(%rcx)
	jne	1b
	CHECK	8f
	movq	%rdx, %rsi			// the first slot has the header's end before it: zero
	subq	-8(%rax), %rsi
	subq	$KARST_EVENT_EXIT_BIT, %rsi
	rorq	$KARST_EVENT_TICK_SHIFT, %rsi	// rsi: ticks, if that was the call's enter; else beyond all limits
	cmpq	karst_min_duration(%rip), %rsi
	jae	5f
3:	.cfi_remember_state
	PUSH	rdi
	movq	-8(%rax), %rdi			// rdi: enter
	movq	$0, -8(%rax)
	leaq	-8(%rax), %rsi			// rsi: its slot
	addq	$8, %rax
	cmpxchgq %rsi, KARST_STATE_CURSOR(%rcx)
	jne	4f
	.cfi_remember_state
	POP	rdi
	RETURN
4:	.cfi_restore_state
	movq	%rdi, (%rsi)			// a signal handler recorded something
	movq	%rdx, 8(%rsi)
	POP	rdi
	RETURN
5:	.cfi_restore_state
	testl	$KARST_EVENT_EXIT_BIT, -8(%rax)
	jz	7f
6:	movq	%rdx, (%rax)
	.cfi_remember_state
	RETURN
7:	.cfi_restore_state			// an enter: perhaps the call's own, and this exit is a tail call's, whose id is another
	movq	-8(%rax), %rsi
	testl	$KARST_EVENT_ID_MASK, %esi
	jz	6b
	subq	%rdx, %rsi
	negq	%rsi
	shrq	$KARST_EVENT_TICK_SHIFT, %rsi
	cmpq	karst_min_duration(%rip), %rsi
	jae	6b
	PUSH	rdi
	movl	-8(%rax), %esi
	andl	$KARST_EVENT_ID_MASK, %esi
	shlq	$4, %rsi
	addq	karst_functions(%rip), %rsi
	movl	%edx, %edi
	andl	$KARST_EVENT_ID_MASK, %edi
	shlq	$4, %rdi
	addq	karst_functions(%rip), %rdi
	movq	(%rdi), %rdi			// two ids with one address are one function
	cmpq	(%rsi), %rdi
	POP	rdi
	je	3b
	jmp	6b
2:	GO_SLOWLY 1b
8:	FILL	(%rax)
	jmp	1b
	HOOK_END \name
	.endm

	TRIM	karst_hook_trim, tsc
	TRIM	karst_hook_trim_clock, clock

// karst_hook_count: an entry under `karst run --count`. Adds one to the function's counter in a page of the thread's own
// (counting/count.h); an increment in memory is one instruction, so handlers cannot come between. Budget: 21 instructions.
	HOOK	karst_hook_count
	PUSH	rax
	PUSH	rdx
	PUSH	rcx
	movq	karst_state@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx
	movl	24(%rsp), %eax			// eax: id
	movq	KARST_STATE_COUNTS(%rcx), %rcx	// rcx: the thread's pages
	testq	%rcx, %rcx
	jz	1f
	movl	%eax, %edx
	shrl	$9, %edx
	movq	(%rcx,%rdx,8), %rcx
	testq	%rcx, %rcx
	jz	1f
	andl	$511, %eax
	incq	(%rcx,%rax,8)
	.cfi_remember_state
	POP	rcx
	POP	rdx
	POP	rax
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
1:	.cfi_restore_state
	PUSH	rsi
	PUSH_REST
	movl	%eax, %edi
	call	karst_count_slowly
	POP_REST
	POP	rsi
	POP	rcx
	POP	rdx
	POP	rax
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
	HOOK_END karst_hook_count

// karst_hook_trace_by_tid: the same event, for processes with threads that a thread-local pointer cannot find
// (process/clone.cc): it asks the kernel for the thread's id. Some 20 times slower, and in use only once the program makes
// such a thread. karst_hook_count_by_tid: the same for `karst run --count`.
	.macro	BY_TID name, function
	HOOK	\name
	PUSH_SOME
	movq	32(%rsp), %rax
	PUSH_REST
	movq	%rax, %rdi
	call	\function
	POP_REST
	RETURN
	HOOK_END \name
	.endm

	BY_TID	karst_hook_trace_by_tid, karst_record_by_tid
	BY_TID	karst_hook_count_by_tid, karst_count_by_tid

// karst_hook_discard: records nothing. For forked children, whose history belongs to nobody.
	HOOK	karst_hook_discard
	leaq	8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	ret
	HOOK_END karst_hook_discard

// karst_hook_keep_flags: a conditional tail call that is taken (arch.h). The exit hook in force is called, and the flags
// come back. It finds the sled's return address KARST_KEPT_FLAGS_SIZE higher than others do. lahf and sahf are used as
// popf would also bring back a trap flag that a debugger set meanwhile.
// karst_hook_keep_flags_watched: the same for watched functions. karst_hook_keep_flags_enter, _watched_enter: the same for
// functions whose call is recorded behind instructions of theirs (format/patch_table.h: kPatchSledLate).
	.macro	KEEP_FLAGS name, hook
	.hidden	\hook
	HOOK	\name
	PUSH	rax
	seto	%al
	lahf
	pushq	%rax			// ah: SF ZF AF PF CF, al: OF
	.cfi_adjust_cfa_offset 8
	call	1f
	popq	%rax
	.cfi_adjust_cfa_offset -8
	addb	$0x7f, %al
	sahf
	POP	rax
	DROP
	ret
	.cfi_adjust_cfa_offset 32	// 0(%rsp) return address, 8 flags, 16 rax, 24 the event's low bits
	.cfi_rel_offset rax, 16
1:	pushq	24(%rsp)
	.cfi_adjust_cfa_offset 8
	jmpq	*\hook(%rip)
	HOOK_END \name
	.endm

// The hooks of functions whose values are wanted (runtime/values/values.h): what the call was given, or returns, becomes a
// note, then the hook in force records the event as it does for others: with the same stack, so that watched calls know
// themselves. The sled's registers are where PUSH_SOME and PUSH_REST put them (format/values.h: SavedRegisters). Vector
// registers are as the program left them: libkarst uses none. Conditional tail calls have no values: no flags are live.
	.macro	VALUES name, hook
	HOOK	\name
	CALL_SAVED karst_record_values
	jmpq	*\hook(%rip)
	HOOK_END \name
	.endm

// The same where the hook in force is the usual one: the note and the event have one time, which is read once.
	.macro	VALUES_AND_CALL name, hook
	HOOK	\name
	PUSH_SOME
	PUSH_REST
	movq	%rbp, %rdi
	call	karst_record_values_and_call
	testl	%eax, %eax			// what follows leaves the flags alone
	POP_REST
	POP_SOME
	jz	1f
	.cfi_remember_state
	DROP
	ret
	.cfi_restore_state
1:	jmpq	*\hook(%rip)
	HOOK_END \name
	.endm

	.hidden	karst_record_values
	.hidden	karst_record_values_and_call
	.hidden	karst_plain_enter
	.hidden	karst_watched_enter
	.hidden	karst_watched_exit
	VALUES_AND_CALL	karst_hook_values_enter, karst_plain_enter
	VALUES_AND_CALL	karst_hook_values_exit, karst_plain_exit
	VALUES	karst_hook_values_watched_enter, karst_watched_enter
	VALUES	karst_hook_values_watched_exit, karst_watched_exit

	KEEP_FLAGS karst_hook_keep_flags, karst_plain_exit
	KEEP_FLAGS karst_hook_keep_flags_watched, karst_watched_exit_deeper
	KEEP_FLAGS karst_hook_keep_flags_enter, karst_plain_enter
	KEEP_FLAGS karst_hook_keep_flags_watched_enter, karst_watched_enter_deeper

	.section .note.GNU-stack, "", @progbits
