// SPDX-License-Identifier: MIT
// The slots by which a program's modules call setjmp, longjmp, the unwinder and their like. Where libkarst comes to a
// process that runs, they were bound before: so that it sees ways out of calls (runtime/ways_out/ways_out.h), each is
// made to lead to what libkarst has of that name. It goes on into libc's, also when nothing is traced any more.
#pragma once
#include <vector>

#include "collect/inject/changes.h"
#include "collect/inject/memory.h"

namespace karst::collect {

/// Those that lead to libc's or libgcc_s's own functions, or will when they are bound.
std::vector<Change> slots_of_ways_out(const ForeignMemory& memory, const std::vector<Mapping>& mappings);

}  // namespace karst::collect
