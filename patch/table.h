// SPDX-License-Identifier: MIT
// The table that the runtime gets (format/patch_table.h), made from places.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "patch/code.h"
#include "patch/elf_image.h"
#include "patch/places.h"
#include "patch/sdt.h"

namespace karst::patch {

/// A probe with all that the runtime is told of it. Of other kinds than kNote there is the place alone.
struct ProbeEntry {
  ProbeNote note;
  ProbeValues values;
  Probe place;
};

/// A detour of a function that has this name.
struct DetourEntry {
  std::string name;
  Detour place;
};

/// A whole table. What is left out is not in it.
std::vector<std::byte> make_table(const ElfImage& image, const Code& code, std::span<const Function> functions,
                                  std::span<const ProbeEntry> probes = {}, std::span<const DetourEntry> detours = {});

}  // namespace karst::patch
