// SPDX-License-Identifier: MIT
// Waits and holds are put together by lock. What waits alone tell of holders is found by one pass over begins and ends
// in order of time: each of them ends what the last wait said.
#include "analysis/lock_rows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace karst::analysis {
namespace {

/// A wait begins or ends.
struct Edge {
  std::uint64_t ticks;
  bool begins;
  std::size_t wait;
};

using Address = std::pair<std::uint32_t, std::uint64_t>;

}  // namespace

std::vector<LockHolder> holders_by_waits(const std::vector<LockWait>& waits, const std::vector<std::size_t>& of) {
  std::vector<Edge> edges;
  edges.reserve(of.size() * 2);
  for (const std::size_t i : of) {
    edges.push_back({waits[i].begin, true, i});
    edges.push_back({waits[i].begin + waits[i].duration, false, i});
  }
  // Who begins as another one ends is told last, so that what it says holds.
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::pair(a.ticks, a.begins) < std::pair(b.ticks, b.begins);
  });
  std::vector<LockHolder> holders;
  std::int64_t waiting = 0;  // one of no length ends before it begins
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    waiting += edge.begins ? 1 : -1;
    const std::uint64_t until = i + 1 < edges.size() ? edges[i + 1].ticks : edge.ticks;
    if (until == edge.ticks || waiting <= 0) continue;
    LockHolder holder;
    holder.begin = edge.ticks;
    holder.end = until;
    if (edge.begins) {
      const LockWait& wait = waits[edge.wait];
      holder.thread = wait.held_in.thread;
      holder.tid = wait.holder;
      holder.wait = edge.wait;
    }
    LockHolder* last = holders.empty() ? nullptr : &holders.back();
    if (last != nullptr && last->end == holder.begin && last->tid == holder.tid && last->thread == holder.thread) {
      last->end = holder.end;
    } else {
      holders.push_back(holder);
    }
  }
  return holders;
}

LockRows lock_rows(const reader::Trace& trace, const LockNames& names, const std::vector<LockWait>& waits,
                   const LockHolds* holds, std::size_t most) {
  LockRows result;
  std::map<Address, std::size_t> place;  // in the rows
  for (Lock& lock : locks_of(trace, names, waits)) {
    if (!has_holder(lock.kind)) continue;
    lock.pairs.clear();
    if (lock.address == 0) {
      result.unnamed += lock.waits;
    } else if (result.rows.size() == most) {
      ++result.more_locks;
      result.more_waits += lock.waits;
    } else {
      place[{lock.process, lock.address}] = result.rows.size();
      result.rows.push_back({std::move(lock), {}, {}});
    }
  }
  const auto row_of = [&](std::uint32_t process, std::uint64_t address) {
    const auto at = place.find({process, address});
    return at == place.end() ? nullptr : &result.rows[at->second];
  };
  for (std::size_t i = 0; i < waits.size(); ++i) {
    LockRow* row = row_of(waits[i].thread->process, waits[i].lock);
    if (row != nullptr && has_holder(lock_kind(trace, waits[i].thread->process, waits[i].zone)))
      row->waits.push_back(i);
  }
  for (LockRow& row : result.rows) {
    std::stable_sort(row.waits.begin(), row.waits.end(),
                     [&](std::size_t a, std::size_t b) { return waits[a].begin < waits[b].begin; });
    if (holds == nullptr) row.holders = holders_by_waits(waits, row.waits);
  }
  for (std::size_t i = 0; holds != nullptr && i < holds->holds.size(); ++i) {
    const LockHold& hold = holds->holds[i];
    LockRow* row = row_of(hold.thread->process, hold.lock);
    if (row != nullptr) row->holders.push_back({hold.thread, hold.thread->tid, hold.begin, hold.end, i});
  }
  return result;
}

std::vector<std::uint16_t> lanes_of(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& spans,
                                    std::uint16_t most) {
  std::vector<std::uint64_t> free_from;  // by lane
  std::vector<std::uint16_t> lanes;
  lanes.reserve(spans.size());
  for (const auto& span : spans) {
    const std::uint64_t begin = span.first;
    const auto lane =
        std::find_if(free_from.begin(), free_from.end(), [&](std::uint64_t from) { return from <= begin; });
    const auto number = static_cast<std::uint16_t>(lane - free_from.begin());
    if (number == most) {
      lanes.push_back(kNoLane);
      continue;
    }
    if (lane == free_from.end()) {
      free_from.push_back(0);
    }
    free_from[number] = std::max(span.second, begin + 1);
    lanes.push_back(number);
  }
  return lanes;
}

}  // namespace karst::analysis
