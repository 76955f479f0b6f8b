// SPDX-License-Identifier: MIT
// Link names as a person reads them.
#pragma once
#include <string>

namespace karst::symbols {

/// What else than the name says how it is encoded.
enum class Language { kOther, kAda };

/// The demangled form of a linker's name: with scopes and parameters, without the return type that templates carry
/// ("f<int>(int)", not "int f<int>(int)"). A compiler's clone keeps its suffix as "[clone .part.0]". A name that is
/// not mangled (C, Fortran), or that is mangled wrongly, comes back as it is. Rust's names, of both of its schemes,
/// come as paths without their hash. Ada's (gnat's pkg__proc) are read only when `language` says so, as a C function
/// may have such a name as well; they come as written: pkg.proc.
///
/// The Itanium C++ ABI's grammar is read by libiberty, the reader behind c++filt, nm -C and gdb. It alone can leave the
/// return type out where it is printed (DMGL_RET_DROP); cutting it from the finished text would need a parser
/// for C++ declarators ("void (*f<int>(int))(char)"). Hostile names, too long or too deep, come back as they are.
/// Any thread with a stack of 8 MiB may call it.
std::string demangle(const char* link_name, Language language = Language::kOther);

}  // namespace karst::symbols
