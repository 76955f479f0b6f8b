// SPDX-License-Identifier: MIT
// Tables of patches (format/patch_table.h) as they come from karst: nothing in one is used before each number in it was
// checked against the module and the table's own size.
#pragma once
#include <link.h>

#include <cstdint>

#include "format/patch_table.h"
#include "runtime/modules/module_image.h"

namespace karst::runtime {

/// A table as it came, and where its stubs are.
struct PlainCode {
  const format::PatchTable* table = nullptr;
  const format::PatchProbe* probes = nullptr;
  const format::PatchSled* sleds = nullptr;
  const format::PatchJump* jumps = nullptr;
  const format::PatchFixup* fixups = nullptr;
  const format::PatchDetour* detours = nullptr;
  const unsigned char* code = nullptr;
  const char* text = nullptr;
  std::uint64_t size = 0;  ///< bytes that are mapped
  bool is_new = true;      ///< it may be patched: nobody executes the module's code

  std::uintptr_t stubs = 0;
  std::uint64_t stubs_size = 0;  ///< whole pages
};

/// Maps the table that `descriptor` holds. False: it is none, or not of this module.
bool open_table(int descriptor, const ModuleImage& image, PlainCode& p);
/// Nothing of it is used any more.
void close_table(PlainCode& p);

bool is_same_table(const PlainCode& a, const PlainCode& b);

/// Each semaphore of the table lies in memory of the module that it may write to.
bool are_semaphores_sound(const dl_phdr_info& info, const PlainCode& p);

}  // namespace karst::runtime
