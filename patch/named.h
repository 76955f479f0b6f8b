// SPDX-License-Identifier: MIT
// Functions of a module that a user named: where they begin, and names that are like a name that nothing has.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "patch/elf_image.h"
#include "patch/find.h"
#include "patch/frames.h"

namespace karst::patch {

/// In order, each once. If there is none, `near` gets a few names that are like the wanted one.
std::vector<std::uint64_t> addresses_of(const ElfImage& image, const WantedNames& wanted,
                                        std::vector<std::string>& near);

/// Leaves in `functions` what was named. What no frame begins with is added, with its reason.
void judge_named(const std::vector<std::uint64_t>& named, const Frames& frames, std::vector<Outcome>& functions);

}  // namespace karst::patch
