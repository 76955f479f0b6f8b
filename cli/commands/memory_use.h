// SPDX-License-Identifier: MIT
// What the part of a trace that was asked for took of memory, for the commands that show it: memory, flame and stacks.
#pragma once
#include "analysis/memory.h"
#include "analysis/parts.h"
#include "base/result.h"
#include "cli/input/trace_input.h"
#include "cli/text/call_name.h"

namespace karst::cli {

/// All threads are looked at, as one may free what another took; allocations count that pass the filters. What is
/// living, and the peak, are of the time until --range ends, or `call`: only what it and those below it took counts
/// then. `parts` gets the functions of the paths. Error: there is none, or no such call.
Result<analysis::MemoryUse> memory_use(const Input& input, analysis::Parts& parts, const CallName* call = nullptr);

}  // namespace karst::cli
