// SPDX-License-Identifier: MIT
// Room for code that karst attach has a thread execute (arch/remote_call.h).
	.text
	.globl	karst_attach_room
	.type	karst_attach_room, @object
	.balign	64
karst_attach_room:
	.zero	8192
	.size	karst_attach_room, . - karst_attach_room

	.section .note.GNU-stack, "", @progbits
