// SPDX-License-Identifier: MIT
// What plain_code.cc and detours.cc share: the modules that have tables. Not for others.
#pragma once
#include "runtime/system/lock.h"
#include "runtime/system/options.h"
#include "runtime/unbuilt/patch_tables.h"

namespace karst::runtime {

struct PlainModule {
  ModuleImage image;
  PlainCode code;
  bool is_here = false;
  bool has_gone = false;  // and that was not told yet
};
/// Each is assigned before it is used.
extern PlainModule* const g_plain;
extern std::uint32_t g_plain_count;

inline constexpr char kNoMemory[] = "there is no memory for its stubs near its code";

/// From now on stubs can be told to karst attach. False: there is no memory.
bool begin_telling();

bool is_program(const dl_phdr_info& info);
/// The descriptor of the module's table; negative: there is none. `what`: of format::PatchesAsked.
int ask_for_table(const dl_phdr_info& info, std::uint32_t what, const Options* session = nullptr);
/// Distances of 32 bits reach from the stubs to all of the module, and to what its code names near it.
bool map_stubs(const ModuleImage& image, PlainCode& p);

}  // namespace karst::runtime
