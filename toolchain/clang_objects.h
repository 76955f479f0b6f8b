// SPDX-License-Identifier: MIT
// What clang's integrated assembler wrote, made smaller: its table of sleds (xray_instr_map, 32 bytes a sled and two
// relocations) becomes karst_clang_sleds (format/sled_note.h: 4 bytes a function with one relocation, 2 bytes an exit).
// And quicker while tracing is off: clang's sled at an entry is a jump over NOPs, and becomes two NOPs.
//
// The new table is to the linker what the old one was: a section for each function's, in its COMDAT group, linked to
// the section of its code and dropped with it.
#pragma once
#include <string>

#include "base/result.h"

namespace karst::toolchain {

/// Rewrites the object file `path` if it has such tables; it changes as a whole or not at all. Whatever else it is
/// (LLVM's bitcode, an archive, a device, a file with several names), it stays as it is, as does a table of which
/// something is unknown. Error: the new file could not be written; the old one is there.
Status shorten_sled_tables(const std::string& path);

}  // namespace karst::toolchain
