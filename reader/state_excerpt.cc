// SPDX-License-Identifier: MIT
// Parts of a log of thread states.
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reader/state_walk.h"
#include "reader/states.h"

namespace karst::reader {
namespace {

using format::StateRecord;
using Records = Column<StateRecord>;

/// The records with those between them that say what is not known (StateWalk::on_doubt); empty when there are none of
/// these. A part of the records may not have what showed it.
Records with_doubts(const Records& records, const std::function<bool(std::uint32_t)>& of_run) {
  struct Doubt {
    std::size_t place;  ///< before which record
    StateRecord record;
  };
  std::vector<Doubt> doubts;
  std::size_t now = 0;
  StateWalk walk(of_run);
  walk.on_doubt = [&](const StateRecord& record) {
    const auto* const behind = std::upper_bound(records.begin(), records.begin() + now, record.ticks,
                                                [](std::uint64_t t, const StateRecord& r) { return t < r.ticks; });
    doubts.push_back({static_cast<std::size_t>(behind - records.begin()), record});
  };
  for (; now < records.size(); ++now) walk.take(records[now]);
  std::stable_sort(doubts.begin(), doubts.end(), [](const Doubt& a, const Doubt& b) { return a.place < b.place; });
  Records all;
  if (doubts.empty()) return all;
  all.reserve(records.size() + doubts.size());
  auto doubt = doubts.begin();
  for (std::size_t i = 0; i <= records.size(); ++i) {
    for (; doubt != doubts.end() && doubt->place == i; ++doubt) all.push_back(doubt->record);
    if (i < records.size()) all.push_back(records[i]);
  }
  return all;
}

}  // namespace

StateLog excerpt_states(const StateLog& log, std::uint64_t begin, std::uint64_t end) {
  std::unordered_map<std::uint32_t, std::size_t> place;
  for (std::size_t i = 0; i < log.tasks.size(); ++i) place.try_emplace(log.tasks[i].tid, i);
  const auto of_run = [&](std::uint32_t tid) {
    const auto at = place.find(tid);
    return at != place.end() && log.tasks[at->second].of_run;
  };
  const Records doubtful = with_doubts(log.records, of_run);
  const Records& records = doubtful.empty() ? log.records : doubtful;
  StateLog part;
  part.source = log.source;
  part.source.begin_ticks = std::max(begin, log.source.begin_ticks);
  part.source.end_ticks = std::max(std::min(end, log.source.end_ticks), part.source.begin_ticks);
  if (log.wakes_from() >= end) part.source.flags &= ~std::uint32_t{format::kStatesWakes | format::kStatesOthers};
  StateWalk walk(of_run);
  const StateRecord* at = records.begin();
  for (; at != records.end() && at->ticks < begin; ++at) walk.take(*at);
  walk.finish(part.source.begin_ticks);
  walk.restate(part.source.begin_ticks, part.records);
  // Losses and the like that lie in other parts are not this part's.
  part.source.lost_events = 0;
  if (part.source.begin_ticks > log.source.begin_ticks) part.source.overwritten_events = 0;
  for (; at != records.end() && at->ticks < end; ++at) {
    part.records.push_back(*at);
    if (at->kind == format::kStateLostEnd) part.source.lost_events += at->value;
  }
  std::vector<bool> occurs(log.tasks.size());
  const auto mark = [&](std::uint32_t tid) {
    const auto found = place.find(tid);
    if (found != place.end()) occurs[found->second] = true;
  };
  for (const StateRecord& r : part.records) {
    mark(r.tid);
    mark(r.other);
  }
  for (std::size_t i = 0; i < log.tasks.size(); ++i)
    if (occurs[i]) part.tasks.push_back(log.tasks[i]);
  return part;
}

}  // namespace karst::reader
