// SPDX-License-Identifier: MIT
// The names of variables that are locks, or that locks lie in.
#pragma once
#include "reader/model.h"
#include "symbols/resolve.h"

namespace karst::symbols {

/// Names of locks in static data (format::kStaticLock) become those of their variables: `g_cache`, `Cache::lock`,
/// `g_server.mutex_` and `g_locks[3]` where debug information says so, else `g_server+0x10`. A lock whose module cannot
/// be read, or is another one by now, keeps its place in the file. Modules are read in sandboxes (sandbox.h).
void name_static_locks(reader::Process& process, const ResolveOptions& options);

}  // namespace karst::symbols
