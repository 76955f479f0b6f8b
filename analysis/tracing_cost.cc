#include "analysis/tracing_cost.h"

#include "analysis/values.h"

namespace karst::analysis {

namespace {

/// What it took to note values, and what else is noted of what tracing took, of the calls in which that was. It ends
/// with the note; what is not known of the call, or is outside of the range, is not taken out of it.
void add_noted(const query::CallColumns& calls, const reader::Calls& notes,
               const std::optional<query::TickRange>& range, reader::Column<std::uint64_t>& taken) {
  taken.clear();
  taken.resize(calls.size());
  for (const reader::Note& note : notes.notes) {
    if (note.row >= calls.size() || (range && (note.ticks < range->begin || note.ticks >= range->end))) continue;
    const std::uint64_t from = range ? std::max(calls.begin[note.row], range->begin) : calls.begin[note.row];
    if (note.ticks <= from) continue;
    taken[note.row] += std::min(ticks_of_tracing(notes, note), note.ticks - from) * format::kCallCostUnit;
  }
}

/// `taken` has what was taken beside the events.
void add_up(const query::CallColumns& calls, const reader::Process& process,
            const std::optional<query::TickRange>& range, reader::Column<std::uint64_t>& taken) {
  const CostOfCalls cost(process);
  for (std::size_t row = calls.size(); row-- > 0;) {
    const std::uint64_t own = cost.inside(calls, row);
    const std::uint64_t within = taken[row];
    taken[row] = within + own;
    const std::uint32_t parent = calls.parent[row];
    if (parent == reader::kNoParent) continue;
    const std::uint64_t begin = calls.begin[row], end = calls.end(row);
    const bool outside = range && (begin >= range->end || (begin < range->begin && end <= range->begin));
    taken[parent] += within + (is_recorded(calls.marks[row]) && !outside ? own + cost.outside() : 0);
  }
}

}  // namespace

void take_cost_out(reader::Calls& calls, const reader::Process& process, const std::optional<query::TickRange>& range) {
  if (process.call_cost == 0 || calls.size() == 0) return;
  calls.call_cost = process.call_cost;
  calls.usual_call_cost = process.usual_call_cost();
  add_noted(query::CallColumns(calls), calls, range, calls.taken);
  add_up(query::CallColumns(calls), process, range, calls.taken);
}

query::CallColumns without_cost(query::CallColumns calls, const reader::Process& process, const reader::Calls* notes,
                                reader::Column<std::uint64_t>& taken) {
  if (process.call_cost == 0 || calls.size() == 0) return calls;
  add_noted(calls, notes != nullptr ? *notes : reader::Calls(), std::nullopt, taken);
  add_up(calls, process, std::nullopt, taken);
  calls.taken = {taken.data(), taken.size()};
  calls.call_cost = process.call_cost;
  calls.usual_call_cost = process.usual_call_cost();
  return calls;
}

namespace {
double cost_ns(std::uint32_t cost, const reader::Clock& clock) {
  if (clock.ticks_per_second == 0) return 0;
  return static_cast<double>(cost) / static_cast<double>(format::kCallCostUnit) * 1e9 /
         static_cast<double>(clock.ticks_per_second);
}
}  // namespace

double call_cost_ns(const reader::Process& process, const reader::Clock& clock) {
  return cost_ns(process.call_cost, clock);
}

double call_cost_off_by_ns(const reader::Process& process, const reader::Clock& clock) {
  return cost_ns(process.call_cost_off_by, clock);
}

}  // namespace karst::analysis
