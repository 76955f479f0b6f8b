// The table that the runtime gets (format/patch_table.h), made from places.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "patch/code.h"
#include "patch/elf_image.h"
#include "patch/places.h"
#include "patch/sdt.h"

namespace karst::patch {

/// A probe with all that the runtime is told of it.
struct ProbeEntry {
  ProbeNote note;
  ProbeValues values;
  Probe place;
};

/// A whole table. Functions and probes that are left out are not in it.
std::vector<std::byte> make_table(const ElfImage& image, const Code& code, std::span<const Function> functions,
                                  std::span<const ProbeEntry> probes = {});

}  // namespace karst::patch
