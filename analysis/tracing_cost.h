// Times without the tracer in them. A process measures at its start what a call costs its thread with Karst's hooks:
// some work as programs have it is done with and without them, and the stamps of its events tell how much of the
// difference lies between a call's begin and its end (runtime/budget/event_cost.cc; in the file: COST). A call's
// duration then has too much by
//
//   inside + call * (calls recorded within it)
//
// What hooks cost varies with the code around them, as processors overlap the two (docs/limits.md). So a single short
// call's time is an estimate, and sums are better than their parts.
#pragma once
#include <optional>

#include "query/selection.h"
#include "reader/column.h"
#include "reader/model.h"

namespace karst::analysis {

/// Whether a call's own events cost its callers time: what it cost to enter one that began before what is known lies
/// there, too.
inline bool is_recorded(std::uint8_t marks) {
  return query::is_counted(marks) && (marks & reader::kCallOpenBegin) == 0;
}

/// From here on calls.time() is without the tracer's cost, if `process` knows it. Calls outside of `range` are not
/// counted; to be used before these are taken out of `calls`.
void take_cost_out(reader::Calls& calls, const reader::Process& process, const std::optional<query::TickRange>& range);

/// The same of columns that somebody else has; the result views `below` beside them.
query::CallColumns without_cost(query::CallColumns calls, const reader::Process& process,
                                reader::Column<std::uint32_t>& below);

/// What a call costs, in ns; 0: not known.
double call_cost_ns(const reader::Process& process, const reader::Clock& clock);
/// How far a call's time may be off for it, and for each call within it as much; in ns; 0: not known.
double call_cost_off_by_ns(const reader::Process& process, const reader::Clock& clock);

}  // namespace karst::analysis
