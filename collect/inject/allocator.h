// SPDX-License-Identifier: MIT
// An allocator that the program of a process has in itself (patch/allocator.h).
#pragma once
#include <string>
#include <vector>

#include "collect/inject/memory.h"
#include "patch/elf_image.h"

namespace karst::collect {

struct OwnAllocator {
  std::string program;             ///< its path in the process's mappings; empty: it has none
  std::vector<patch::Range> code;  ///< ELF addresses; empty: which code it is cannot be told
};

/// Found once for each file.
OwnAllocator own_allocator(const HeldProcess& process, const ForeignMemory& memory,
                           const std::vector<Mapping>& mappings);

}  // namespace karst::collect
