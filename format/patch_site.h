// SPDX-License-Identifier: MIT
// What stands at a site of a module's code that is patched: what stood there before, and what karst has written over
// it. Whoever writes there, or looks what is there, asks this one: the runtime as the program starts, as it gives code
// back and as tracing goes on (runtime/unbuilt/plain_jumps.h), and karst, from outside of a process that it has stopped
// (collect/inject/changes.h). What is neither is somebody else's, and is left alone.
#pragma once
#include <cstdint>

#include "format/patch_table.h"

namespace karst::format {

/// A PatchJump in a process.
struct PatchSite {
  std::uint64_t address = 0;
  std::uint8_t size = 0;   ///< bytes
  std::uint8_t guard = 0;  ///< of PatchJump
  unsigned char before[8] = {};
  unsigned char after[8] = {};

  /// `size` bytes that are there.
  constexpr bool is_before(const unsigned char* bytes) const { return are_same(bytes, before); }
  constexpr bool is_after(const unsigned char* bytes) const { return are_same(bytes, after); }

 private:
  constexpr bool are_same(const unsigned char* a, const unsigned char* b) const {
    for (std::uint32_t i = 0; i < size; ++i)
      if (a[i] != b[i]) return false;
    return true;
  }
};

/// Its numbers are in the bounds that the jump itself sets.
constexpr bool is_possible(const PatchJump& jump) {
  return jump.size != 0 && jump.size <= sizeof jump.before &&
         (jump.field == kPatchNoField || (jump.size >= 4 && jump.field <= jump.size - 4));
}

/// `bias` is added to ELF addresses; the table's code lies at `stubs`. The jump is possible.
constexpr PatchSite site_of(const PatchJump& jump, std::uint64_t bias, std::uint64_t stubs) {
  PatchSite site;
  site.address = bias + jump.address;
  site.size = jump.size;
  site.guard = jump.guard;
  for (std::uint32_t i = 0; i < jump.size; ++i) {
    site.before[i] = jump.before[i];
    site.after[i] = jump.after[i];
  }
  if (jump.field != kPatchNoField) {
    const std::uint64_t distance = stubs + jump.offset - (site.address + jump.field + 4U);
    for (std::uint32_t i = 0; i < 4; ++i) site.after[jump.field + i] = static_cast<unsigned char>(distance >> 8 * i);
  }
  return site;
}

}  // namespace karst::format
