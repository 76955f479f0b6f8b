// SPDX-License-Identifier: MIT
// The file of the program that this process runs.
#pragma once
#include <cstddef>

namespace karst::runtime {

/// Its path, ended by a zero, in `buffer`; the length, or 0 if it cannot be told or does not fit. It is what the kernel
/// started, or what the dynamic linker was told to load, if it was started as a program itself. Of a file that was
/// removed or replaced: where it was.
std::size_t own_program(char* buffer, std::size_t size);
/// What leads to the very file, also if it is not at its path any more: a link of the kernel's, or `buffer` with the
/// path of what the dynamic linker loaded.
const char* link_to_own_program(char* buffer, std::size_t size);
/// The same file, to be read; a negative number if it cannot be.
long open_own_program();

}  // namespace karst::runtime
