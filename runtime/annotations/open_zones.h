// SPDX-License-Identifier: MIT
// Zones that begin and end by calls of their own, as ITT's tasks and NVTX's pushed ranges do: the end does not say what
// ends. Each thread has a stack of those that are open. Any context.
#pragma once
#include <cstdint>

#include "runtime/annotations/saying.h"

namespace karst::runtime {

/// The calling thread's innermost zone is this one from now on; `owner` (a domain, a lock) tells whose it is. What
/// follows is karst_api_zone_enter(name): as a caller's last call, at its own caller's depth of the stack. A null name
/// is a zone that is not recorded. Returns the name; null: there is no trace.
NoteName* open_zone(NoteName* name, const void* owner);
/// The name of its innermost zone of this owner, which is taken away with those that began within it; null: there is
/// none, or it is not recorded. What follows is karst_api_zone_leave(name).
NoteName* close_zone(const void* owner);

}  // namespace karst::runtime
