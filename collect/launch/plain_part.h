// SPDX-License-Identifier: MIT
// Whether a program that was built for tracing has functions of other compilers' objects in it, which can be patched.
#pragma once
#include "binary/elf_file.h"

namespace karst::collect {

/// A quick look, as each start of a program takes it: it goes by the linker's table of frames (.eh_frame_hdr) and by
/// the tables of sleds. True also where that table is of another form than linkers write today. Functions of a few
/// bytes, as libc's own parts in a program are, do not count. False where clang's own table of sleds remained
/// (format/sled_note.h): it does not tell which functions their source keeps out.
bool has_plain_part(const binary::ElfFile& file);

}  // namespace karst::collect
