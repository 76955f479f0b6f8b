// The table that the runtime gets (format/patch_table.h), made from places.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "patch/code.h"
#include "patch/elf_image.h"
#include "patch/places.h"

namespace karst::patch {

/// A whole table. Functions that are left out are not in it.
std::vector<std::byte> make_table(const ElfImage& image, const Code& code, std::span<const Function> functions);

}  // namespace karst::patch
