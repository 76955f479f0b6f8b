// SPDX-License-Identifier: MIT
// What tracing costs the process now (ArenaControl::cost_ppm), and the budget that it may cost (budget_ppm).
//
// The maintenance process looks at each thread's cursor every few milliseconds: that tells how many events it has had,
// and the hooks pay nothing for it. An event's cost is measured in this process, on this CPU, with the hooks that are
// in force. When the cost is too much, the newest events of the threads that it falls on show which functions make
// them, and Culler (budget/budget_controller.h) decides which of these go.
//
// The estimate is the greatest share of its CPU time that any one thread spends on tracing, as others may wait for it;
// or that of the process, in which threads count that came and went between two looks. CPU time, not the time that
// passes: where threads wait for a processor, or take turns, what tracing adds to their work is added to the time that
// passes in the same proportion; where they wait for other things, it is added to less. A thread that rests almost all
// of the time (15 parts of 16) is taken to work a 16th of it.
#pragma once
#include <cstdint>

#include "runtime/maintenance/control.h"
#include "runtime/system/options.h"

namespace karst::runtime {

/// At start, by the first thread, when hooks are chosen: measures what an event costs (some 10 us), and enters the
/// budget of the options into the control page.
void prepare_budget(const Options& options);

/// The maintenance process's task.
std::uint64_t budget_task(const Moment& now);

}  // namespace karst::runtime
