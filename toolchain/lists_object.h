// SPDX-License-Identifier: MIT
// The lists of functions that a program carries (format/filter_list.h), as an object file to link into it.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace karst::toolchain {

/// The bytes of an x86-64 ELF object whose one note has the entries.
std::string lists_object(const std::vector<std::string>& entries);

/// Puts bytes into memory that the programs started from here can open under the returned name, as long as one of them
/// lives: nothing is left to clean up, whoever fails or is killed.
Result<std::string> as_inherited_file(const std::string& bytes);

}  // namespace karst::toolchain
