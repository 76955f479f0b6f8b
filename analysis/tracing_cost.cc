// SPDX-License-Identifier: MIT
#include "analysis/tracing_cost.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/values.h"

namespace karst::analysis {

namespace {

/// What is not known of the call, or is outside of the range, is not taken out of it.
template <typename Has>
void add_noted(const columns::CallColumns& calls, std::span<const NotedCost> noted,
               const std::optional<columns::TickRange>& range, Has has, reader::Column<std::uint64_t>& taken) {
  for (const NotedCost& cost : noted) {
    const std::uint64_t row = cost.row;
    if (row >= calls.size() || !has(static_cast<std::uint32_t>(row)) ||
        (range && (cost.ticks < range->begin || cost.ticks >= range->end)))
      continue;
    const std::uint64_t from = range ? std::max(calls.begin[row], range->begin) : calls.begin[row];
    if (cost.ticks <= from) continue;
    taken[row] += std::min(cost.took, cost.ticks - from) * format::kCallCostUnit;
  }
}

/// What calls cost, each with those within it, when it is told of them from the last to the first. `taken` has what was
/// taken beside the events.
class CostSums {
 public:
  CostSums(const columns::CallColumns& calls, const reader::CallCost& cost,
           const std::optional<columns::TickRange>& range, reader::Column<std::uint64_t>& taken)
      : calls_(calls), range_(range), taken_(taken), cost_(cost) {}

  /// `parent`: as the columns have it; or none, to whom nothing is told.
  void add(std::size_t row, std::uint32_t parent, bool has_called = false) {
    const std::uint64_t own = cost_.inside(calls_, row, has_called);
    const std::uint64_t within = taken_[row];
    taken_[row] = within + own;
    if (parent == reader::kNoParent) return;
    const std::uint64_t begin = calls_.begin[row], end = calls_.end(row);
    const bool outside = range_ && (begin >= range_->end || (begin < range_->begin && end <= range_->begin));
    taken_[parent] += within + (is_recorded(calls_.marks[row]) && !outside ? own + cost_.outside() : 0);
  }
  /// Of all within it that was recorded, as if each had cost what is usual; and its own.
  std::uint64_t whole(std::uint32_t row) const {
    const std::uint64_t within = columns::subtree_end(calls_, row) - row - 1;
    return cost_.inside(calls_, row) + within * (cost_.inside() + cost_.outside());
  }

 private:
  const columns::CallColumns calls_;
  const std::optional<columns::TickRange> range_;
  reader::Column<std::uint64_t>& taken_;
  const CostOfCalls cost_;
};

void add_up(const columns::CallColumns& calls, const reader::CallCost& cost,
            const std::optional<columns::TickRange>& range, reader::Column<std::uint64_t>& taken) {
  CostSums sums(calls, cost, range, taken);
  for (std::size_t row = calls.size(); row-- > 0;) sums.add(row, calls.parent[row]);
}

void add_all(const columns::CallColumns& calls, const reader::CallCost& cost, std::span<const NotedCost> noted,
             const std::optional<columns::TickRange>& range, reader::Column<std::uint64_t>& taken) {
  taken.clear();
  taken.resize(calls.size());
  add_noted(
      calls, noted, range, [](std::uint32_t) { return true; }, taken);
  add_up(calls, cost, range, taken);
}

columns::CallColumns viewing(columns::CallColumns calls, const reader::Column<std::uint64_t>& taken,
                             const reader::CallCost& cost) {
  calls.taken = {taken.data(), taken.size()};
  calls.call_cost = cost.call;
  calls.usual_call_cost = cost.usual();
  return calls;
}

}  // namespace

void take_cost_out(reader::Calls& calls, const reader::CallCost& cost, const std::optional<columns::TickRange>& range) {
  if (cost.call == 0 || calls.size() == 0) return;
  calls.call_cost = cost.call;
  calls.usual_call_cost = cost.usual();
  add_all(columns::CallColumns(calls), cost, noted_costs(calls), range, calls.taken);
}

void CostOfPieces::take_out(const reader::Piece& piece, reader::Calls& calls) {
  if (cost_.call == 0) return;
  calls.call_cost = cost_.call;
  calls.usual_call_cost = cost_.usual();
  calls.taken.clear();
  calls.taken.resize(piece.end);
  std::copy_n(carried_.begin(), std::min<std::size_t>(piece.carried, piece.end), calls.taken.begin());
  const columns::CallColumns columns(calls);
  const auto is_there = [&](std::uint32_t row) { return row < piece.end; };
  add_noted(columns, noted_costs(calls, piece.notes), std::nullopt, is_there, calls.taken);
  CostSums sums(columns, cost_, std::nullopt, calls.taken);
  auto open = piece.open.rbegin();
  for (std::uint32_t row = piece.end; row-- > 0;) {
    if (open != piece.open.rend() && *open == row)
      ++open;
    else
      sums.add(row, calls.parent[row], row < piece.parted);
  }
  carried_.clear();
  for (const std::uint32_t row : piece.open) carried_.push_back(calls.taken[row]);
}

std::vector<NotedCost> noted_costs(const reader::Calls& calls) { return noted_costs(calls, calls.notes.size()); }

std::vector<NotedCost> noted_costs(const reader::Calls& calls, std::size_t notes) {
  std::vector<NotedCost> costs;
  for (const reader::Note& note : std::span(calls.notes).first(notes))
    if (const std::uint64_t took = ticks_of_tracing(calls, note); took != 0)
      costs.push_back({note.row, note.ticks, took});
  return costs;
}

columns::CallColumns without_cost(columns::CallColumns calls, const reader::CallCost& cost,
                                  std::span<const NotedCost> noted, reader::Column<std::uint64_t>& taken) {
  if (cost.call == 0 || calls.size() == 0) return calls;
  add_all(calls, cost, noted, std::nullopt, taken);
  return viewing(calls, taken, cost);
}

columns::CallColumns without_cost(columns::CallColumns calls, const columns::RowRange& rows,
                                  const reader::CallCost& cost, std::span<const NotedCost> noted,
                                  reader::Column<std::uint64_t>& taken, std::vector<columns::WholeCost>& beyond) {
  if (cost.call == 0 || rows.empty()) return calls;
  taken.resize_unwritten(rows.last);
  for (const std::uint32_t row : rows.outer) taken[row] = 0;
  std::fill(taken.begin() + rows.first, taken.begin() + rows.last, 0);
  add_noted(
      calls, noted, rows.range, [&](std::uint32_t row) { return rows.has(row); }, taken);
  CostSums sums(calls, cost, rows.range, taken);
  const auto add = [&](std::uint32_t row) {
    const std::uint32_t parent = calls.parent[row];
    sums.add(row, rows.has(parent) ? parent : reader::kNoParent);
  };
  for (std::uint32_t row = rows.last; row-- > rows.first;) add(row);
  for (auto row = rows.outer.rbegin(); row != rows.outer.rend(); ++row) add(*row);
  // Who goes on behind the range's end encloses the last row, or is that row.
  const auto note_beyond = [&](std::uint32_t row) {
    beyond.push_back({row, std::max(sums.whole(row), taken[row]) / format::kCallCostUnit});
  };
  if (rows.first != rows.last)
    for (std::uint32_t row = rows.last - 1; row != reader::kNoParent && row >= rows.first; row = calls.parent[row])
      if (calls.end(row) > rows.range.end) note_beyond(row);
  for (auto row = rows.outer.rbegin(); row != rows.outer.rend(); ++row) note_beyond(*row);
  std::reverse(beyond.begin(), beyond.end());
  return viewing(calls, taken, cost);
}

CostWithin::CostWithin(const columns::CallColumns& calls, std::uint32_t row, const reader::CallCost& cost,
                       std::span<const NotedCost> noted)
    : calls_(calls), cost_(cost) {
  if (cost.call == 0) return;
  const std::uint32_t end = columns::subtree_end(calls, row);
  std::copy_if(noted.begin(), noted.end(), std::back_inserter(noted_),
               [&](const NotedCost& of) { return of.row >= row && of.row < end; });
  std::stable_sort(noted_.begin(), noted_.end(), [](const NotedCost& a, const NotedCost& b) { return a.row < b.row; });
}

std::uint64_t CostWithin::noted_units(std::uint32_t first, std::uint32_t end) const {
  std::uint64_t taken = 0;
  auto noted = std::lower_bound(noted_.begin(), noted_.end(), first,
                                [](const NotedCost& of, std::uint32_t number) { return of.row < number; });
  for (; noted != noted_.end() && noted->row < end; ++noted)
    if (noted->ticks > calls_.begin[noted->row])
      taken += std::min(noted->took, noted->ticks - calls_.begin[noted->row]) * format::kCallCostUnit;
  return taken;
}

std::uint64_t CostWithin::units(std::uint32_t row) const {
  if (cost_.call == 0) return 0;
  const CostOfCalls of_calls(cost_);
  const std::uint32_t end = columns::subtree_end(calls_, row);
  std::uint64_t taken = of_calls.inside(calls_, row) + noted_units(row, end);
  for (std::uint32_t at = row + 1; at < end; ++at)
    if (is_recorded(calls_.marks[at])) taken += of_calls.inside(calls_, at) + of_calls.outside();
  return taken;
}

std::uint64_t CostWithin::own_units(std::uint32_t row) const {
  return cost_.call == 0 ? 0 : CostOfCalls(cost_).inside(calls_, row) + noted_units(row, row + 1);
}

std::uint64_t CostWithin::units_of_caller(std::uint32_t row, std::uint64_t units) const {
  if (cost_.call == 0) return 0;
  const CostOfCalls of_calls(cost_);
  return is_recorded(calls_.marks[row]) ? units + of_calls.outside() : units - of_calls.inside(calls_, row);
}

std::uint64_t CostWithin::ticks(std::uint32_t row, std::uint64_t units) const {
  return std::min(units / format::kCallCostUnit, calls_.duration[row]);
}

std::uint64_t cost_of_call(const columns::CallColumns& calls, std::uint32_t row, const reader::CallCost& cost,
                           std::span<const NotedCost> noted) {
  return CostWithin(calls, row, cost, noted).of(row);
}

namespace {
/// Threads' clocks (`--clock thread`) are one kind, TSCs of as many ticks a second another.
bool have_one_clock(const reader::Trace& a, const reader::Trace& b) {
  constexpr double kCalibrated = 1e-3;
  const auto is_threads = [](const reader::Process& p) { return p.clock_period_ticks != 0; };
  const auto uses_threads = [&](const reader::Trace& trace) {
    return std::any_of(trace.processes().begin(), trace.processes().end(), is_threads);
  };
  const auto rate = static_cast<double>(a.clock().ticks_per_second);
  return std::abs(rate - static_cast<double>(b.clock().ticks_per_second)) <= kCalibrated * rate &&
         uses_threads(a) == uses_threads(b);
}
}  // namespace

std::optional<reader::CallCost> cost_to_compare(std::span<const reader::Trace* const> traces) {
  std::uint64_t count = 0, call = 0, inside = 0, off_by = 0;
  bool all_know = true, one_clock = true;
  for (const reader::Trace* trace : traces) {
    one_clock = one_clock && have_one_clock(*traces[0], *trace);
    for (const reader::Process& process : trace->processes()) {
      if (process.threads.empty()) continue;
      ++count;
      all_know = all_know && process.cost.call != 0;
      call += process.cost.call;
      inside += process.cost.inside;
      off_by += process.cost.off_by;
    }
  }
  if (!all_know || count == 0) return reader::CallCost{};
  if (!one_clock) return std::nullopt;
  const auto mean = [count](std::uint64_t sum) { return static_cast<std::uint32_t>(sum / count); };
  return reader::CallCost{mean(call), mean(inside), mean(off_by)};
}

namespace {
double cost_ns(std::uint32_t cost, const reader::Clock& clock) {
  if (clock.ticks_per_second == 0) return 0;
  return static_cast<double>(cost) / static_cast<double>(format::kCallCostUnit) * 1e9 /
         static_cast<double>(clock.ticks_per_second);
}
}  // namespace

double call_cost_ns(const reader::CallCost& cost, const reader::Clock& clock) { return cost_ns(cost.call, clock); }

double call_cost_off_by_ns(const reader::CallCost& cost, const reader::Clock& clock) {
  return cost_ns(cost.off_by, clock);
}

}  // namespace karst::analysis
