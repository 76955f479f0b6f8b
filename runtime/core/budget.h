// What tracing costs the process now (ArenaControl::cost_ppm), and the budget that it may cost (budget_ppm).
//
// The maintenance thread looks at each thread's cursor every few milliseconds: that tells how many events it has had,
// and the hooks pay nothing for it. An event's cost is measured in this process, on this CPU, with the hooks that are
// in force. When the cost is too much, the newest events of the threads that it falls on show which functions make
// them, and Culler (core/budget_controller.h) decides which of these go.
//
// The estimate is the greater one of two:
//   * the greatest share of its time that any one thread spends on tracing: others may wait for it;
//   * all threads' cost over the process's CPU time, or over the time that has passed, whichever is less: threads that
//     take turns, or share a CPU, add up.
#pragma once
#include <cstdint>

#include "runtime/core/control.h"
#include "runtime/core/options.h"

namespace karst::runtime {

/// At start, by the first thread, when hooks are chosen: measures what an event costs (some 10 us), and enters the
/// budget of the options into the control page.
void prepare_budget(const Options& options);

/// The maintenance thread's task.
std::uint64_t budget_task(const Moment& now);

}  // namespace karst::runtime
