// What the part of a trace that was asked for took of memory, for the commands that show it: memory, flame and stacks.
#pragma once
#include "analysis/memory.h"
#include "analysis/parts.h"
#include "base/result.h"
#include "cli/trace_input.h"

namespace karst::cli {

/// All threads are looked at, as one may free what another took; allocations count that pass the filters. What is
/// living, and the peak, are of the time until --range ends. `parts` gets the functions of the paths. Error: there is
/// none.
Result<analysis::MemoryUse> memory_use(const Input& input, analysis::Parts& parts);

}  // namespace karst::cli
