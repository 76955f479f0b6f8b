// SPDX-License-Identifier: MIT
// The runtime's own note (format/sled_note.h): a static program with it traces itself.
#include "format/sled_note.h"

	.section .note.karst, "a", @note
	.balign	4
	.long	2f - 1f
	.long	4f - 3f
	.long	KARST_NOTE_TYPE_RUNTIME
1:	.asciz	KARST_NOTE_NAME
2:	.balign	4
3:	.long	KARST_RUNTIME_VERSION
4:
	.section .note.GNU-stack, "", @progbits
