// SPDX-License-Identifier: MIT
// The file that a module was mapped from (format/file_identity.h).
#pragma once
#include <cstdint>

#include "format/file_identity.h"

namespace karst::runtime {

/// How to see which file is at a module's path. It may not be the one that was mapped: a program that karst attach has
/// come to may have been replaced long before.
enum class Look : std::uint8_t {
  kAtMapping,  ///< what the kernel says of the mapping as well; takes a descriptor for a moment
  kAtPath,     ///< the path alone: the module has been mapped right now
};

/// False: it cannot be told. `path`: the module's; empty for the program. `code`: an address in its code.
bool identify_file(const char* path, std::uintptr_t code, Look look, format::FileIdentity& file);

}  // namespace karst::runtime
