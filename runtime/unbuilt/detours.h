// SPDX-License-Identifier: MIT
// Detours (format/patch_table.h): libraries of interpose/ stand before functions that the program has in itself, as an
// allocator's malloc. Their jumps are karst's to write (collect/inject/patch.h).
#pragma once
#include "runtime/system/options.h"

namespace karst::runtime {

/// In a process that has an arena: asks `session` for detours of the program and maps their stubs, closed. Their jumps
/// are karst's to write (collect/inject/patch.h). Null; or why not, in words for people. Any thread.
const char* fetch_detours(const Options& session);
/// Where what the program's own function of this name was can be called; null: it has no detour, or the jumps of the
/// detours do not all stand. For libraries of interpose/, as they begin.
const void* find_detour(const char* name);
/// From now on calls of that function go to `to`. False, and nothing changed: it has no detour, or one that leads
/// elsewhere, or code may not be changed. Threads may be executing it.
bool open_detour(const char* name, const void* to);

}  // namespace karst::runtime
