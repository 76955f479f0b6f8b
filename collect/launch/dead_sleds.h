// SPDX-License-Identifier: MIT
// Tools that rewrite a program behind the linker (llvm-bolt) put its functions elsewhere. Sleds are then where the
// functions were: in code that nobody executes.
#pragma once
#include <cstdint>

#include "binary/elf_file.h"

namespace karst::collect {

struct DeadSleds {
  std::uint64_t functions = 0;  ///< that have sleds
  std::uint64_t dead = 0;       ///< whose sleds lie in code that was left behind
};
/// Goes by the section that llvm-bolt leaves the old code in, and by symbols: where the file has some, and none of them
/// names a function that has a sled, all of its sleds are dead.
DeadSleds find_dead_sleds(const binary::ElfFile& file);

}  // namespace karst::collect
