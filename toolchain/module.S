// Linked into every traced executable and shared library by karst-gcc and karst-g++ (see karst-gcc.specs): the note of
// format/sled_note.h. It refers to no symbol of the runtime, so the program runs without it.
#include "format/sled_note.h"

	.section karst_sleds, "aR", @progbits
	.balign	4
	.weak	__start_karst_sleds
	.weak	__stop_karst_sleds
	.hidden	__start_karst_sleds
	.hidden	__stop_karst_sleds

	.section .note.karst, "a", @note
	.balign	4
	.long	2f - 1f
	.long	4f - 3f
	.long	KARST_NOTE_TYPE
1:	.asciz	KARST_NOTE_NAME
2:	.balign	4
3:	.long	KARST_NOTE_VERSION
	.long	0
	.long	__start_karst_sleds - .
	.long	__stop_karst_sleds - .
4:
	.section .note.GNU-stack, "", @progbits
