// SPDX-License-Identifier: MIT
// What compilers did for tracing in a module that has sleds (format/sled_note.h): its other functions can be patched
// beside them.
#pragma once
#include <cstdint>
#include <vector>

#include "patch/elf_image.h"

namespace karst::patch {

struct Sleds {
  std::vector<Range> code;              ///< of the sleds, by their beginnings; and the first bytes of functions' parts
  std::vector<std::uint64_t> untraced;  ///< in order: where functions begin that their sources keep out
};
/// Of a module without sleds both are empty.
Sleds sleds_of(const ElfImage& image);

}  // namespace karst::patch
