// SPDX-License-Identifier: MIT
// Turns what gcc writes for `-p -mfentry -mrecord-mcount -minstrument-return=nop5 -mrecord-return` into Karst's
// sleds and their table (format/sled_note.h).
//
// gcc's own tables cannot be used as they are, seen with gcc 12: they are not in the COMDAT group of their function,
// so that two objects with the same inline function or template do not link ("defined in discarded section"); they hold
// absolute addresses in read-only sections, which makes DT_TEXTREL of PIC code; and they do not say to which function
// an exit belongs, which is no longer to be seen from its address once a function is split into hot and cold parts.
//
//                                                .Lkarst7:
//   1:  call *__fentry__@GOTPCREL(%rip)          1:  .byte 0x0f,0x1f,0x44,0x00,0x00
//       .section __mcount_loc, "a",@progbits   ->    .pushsection karst_sleds,"aR?",@progbits
//       .quad 1b                                     .long 1b - .
//       .previous                                    .popsection
//
// An exit's record is its distance from .Lkarst7, in 2 bytes, where that is sure to fit. Where it is not (another
// section, inline assembly, a large function) it has 8 bytes.
//
// A function's part in another section (`f.cold:`) gets a record of its own, without a sled, by which unwinding finds
// the function. Entries in a section karst_always_loc (attribute fentry_section) get the KARST_SLED_ALWAYS bit.
//
// R (SHF_GNU_RETAIN) keeps the tables where the linker collects garbage: lld does not count the references from
// __start_karst_sleds. What is traced is kept with them. ? makes the assembler choose the group of the section the sled
// lies in (none: a plain section). Exits in functions without an entry (gcc's thunks) get no record.
#pragma once
#include <string>
#include <string_view>

namespace karst::toolchain {

/// Filters one assembler source. Text without gcc's tables comes back as it was.
std::string filter_assembly(std::string_view source);

}  // namespace karst::toolchain
