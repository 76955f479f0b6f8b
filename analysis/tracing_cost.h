// SPDX-License-Identifier: MIT
// Times without the tracer in them. A process measures at its start what a call costs its thread with Karst's hooks:
// some work as programs have it is done with and without them, and the stamps of its events tell how much of the
// difference lies between a call's begin and its end (runtime/budget/event_cost.cc; in the file: COST). A call's
// duration then has too much by
//
//   its own part inside + what the calls recorded within it cost, inside and outside
//
// What hooks cost varies with the code around them, as processors overlap the two (docs/limits.md). Between two events
// that follow each other as closely as events can, there was next to nothing to overlap with: of a call of that length,
// with none within it, seven eighths are taken for the hooks', and less the longer it is, up to twice that length. So a
// single short call's time is an estimate, and sums are better than their parts.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "columns/scope.h"
#include "format/trace.h"
#include "reader/column.h"
#include "reader/model.h"
#include "reader/pieces.h"
#include "reader/trace.h"

namespace karst::analysis {

/// Whether a call's own events cost its callers time: what it cost to enter one that began before what is known lies
/// there, too.
inline bool is_recorded(std::uint8_t marks) {
  return columns::is_counted(marks) && (marks & reader::kCallOpenBegin) == 0;
}

/// What calls of a process cost, in 1/format::kCallCostUnit ticks.
class CostOfCalls {
 public:
  explicit CostOfCalls(const reader::CallCost& cost)
      : inside_(cost.inside), outside_(cost.call - cost.inside), event_(cost.off_by / 2) {}
  /// Of the call of this row, between its begin and its end. All calls of the thread must be there.
  /// `has_called`: it is known that there were calls within it.
  std::uint64_t inside(const columns::CallColumns& calls, std::size_t row, bool has_called = false) const {
    const bool is_alone = !has_called && (row + 1 == calls.size() || calls.parent[row + 1] != row);
    return is_alone ? inside_alone(calls.duration[row]) : inside_;
  }
  /// Of a usual one.
  std::uint64_t inside() const { return inside_; }
  std::uint64_t outside() const { return outside_; }

 private:
  std::uint64_t inside_alone(std::uint64_t ticks) const {
    constexpr std::uint64_t kUnit = format::kCallCostUnit;
    if (ticks >= 2 * event_ / kUnit) return inside_;
    const std::uint64_t near = std::min(ticks * kUnit, 2 * event_ - ticks * kUnit);
    return std::max(inside_, near - near / 8);
  }
  std::uint64_t inside_, outside_;
  std::uint64_t event_;  ///< of an event among nothing else; 0: not known
};

/// From here on calls.time() is without the tracer's cost, also of values that it noted, if that is known. Calls
/// outside of `range` are not counted; to be used before these are taken out of `calls`.
void take_cost_out(reader::Calls& calls, const reader::CallCost& cost, const std::optional<columns::TickRange>& range);

/// The same as take_cost_out() of all of a thread's calls, for its pieces one after the other.
class CostOfPieces {
 public:
  explicit CostOfPieces(const reader::CallCost& cost) : cost_(cost) {}
  /// `calls`: those of the piece.
  void take_out(const reader::Piece& piece, reader::Calls& calls);

 private:
  const reader::CallCost cost_;
  std::vector<std::uint64_t> carried_;  // what was taken so far of the calls that are open
};

/// What tracing took of a call beside its events: to note values, and what it noted of itself (format/note.h).
struct NotedCost {
  std::uint64_t row;    ///< of the call
  std::uint64_t ticks;  ///< when that ended
  std::uint64_t took;   ///< ticks
};
/// Of the calls of one thread, with their notes.
std::vector<NotedCost> noted_costs(const reader::Calls& calls);
/// The same of the first `notes` notes.
std::vector<NotedCost> noted_costs(const reader::Calls& calls, std::size_t notes);

/// The same as take_cost_out() of columns that somebody else has; the result views `taken` beside them.
columns::CallColumns without_cost(columns::CallColumns calls, const reader::CallCost& cost,
                                  std::span<const NotedCost> noted, reader::Column<std::uint64_t>& taken);
/// The same of the calls that a question is about, in its range: nothing is known of the others. `beyond` gets those
/// that go beyond it, of whose time outside of the range the cost is that of its usual calls.
columns::CallColumns without_cost(columns::CallColumns calls, const columns::RowRange& rows,
                                  const reader::CallCost& cost, std::span<const NotedCost> noted,
                                  reader::Column<std::uint64_t>& taken, std::vector<columns::WholeCost>& beyond);

/// What of one call's duration is the tracer's, and of the calls within it, as without_cost() has it.
class CostWithin {
 public:
  CostWithin(const columns::CallColumns& calls, std::uint32_t row, const reader::CallCost& cost,
             std::span<const NotedCost> noted);
  /// Ticks of the call, or of one within it. All of what is within that one is looked at.
  std::uint64_t of(std::uint32_t row) const { return ticks(row, units(row)); }

  /// The same in steps, so that a call and those that it made need one look: in 1/format::kCallCostUnit ticks.
  std::uint64_t units(std::uint32_t row) const;
  /// Of a call without those that it made.
  std::uint64_t own_units(std::uint32_t row) const;
  /// Of a call's caller: what it has for this call, of which `units` are.
  std::uint64_t units_of_caller(std::uint32_t row, std::uint64_t units) const;
  std::uint64_t ticks(std::uint32_t row, std::uint64_t units) const;

 private:
  std::uint64_t noted_units(std::uint32_t first, std::uint32_t end) const;

  const columns::CallColumns calls_;
  const reader::CallCost cost_;
  std::vector<NotedCost> noted_;  // by row
};
/// The same of one call alone.
std::uint64_t cost_of_call(const columns::CallColumns& calls, std::uint32_t row, const reader::CallCost& cost,
                           std::span<const NotedCost> noted);

/// What a call is taken to cost in traces that are compared. What their processes measured differs by chance, so it is
/// the mean, by call 0 if some do not know it. None: their clocks differ, as those of two machines do; then each
/// process has what it measured.
std::optional<reader::CallCost> cost_to_compare(std::span<const reader::Trace* const> traces);

/// What a call costs, in ns; 0: not known.
double call_cost_ns(const reader::CallCost& cost, const reader::Clock& clock);
/// How far a call's time may be off for it, and for each call within it as much; in ns; 0: not known.
double call_cost_off_by_ns(const reader::CallCost& cost, const reader::Clock& clock);

}  // namespace karst::analysis
