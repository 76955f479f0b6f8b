// SPDX-License-Identifier: MIT
#include "engine/index/newest_part.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace karst::engine {
namespace {

using Key = std::pair<std::uint32_t, std::uint32_t>;

Key key_of(const reader::Thread& thread) { return {thread.process, thread.index}; }

template <typename Use>
void each_thread(const reader::Trace& trace, Use&& use) {
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) use(thread, trace.blocks(thread));
}

// How many events there are behind what is left out.
std::uint64_t events_behind(const reader::Trace& trace, const reader::LeftOut& left_out) {
  std::uint64_t events = 0;
  each_thread(trace, [&](const reader::Thread& thread, std::span<const reader::StoredBlock> blocks) {
    const auto found = left_out.find(key_of(thread));
    for (std::size_t i = found == left_out.end() ? 0 : found->second.blocks; i < blocks.size(); ++i)
      events += blocks[i].size();
  });
  return events;
}

// The time from which on there are so many.
std::uint64_t time_of_newest(const reader::Trace& trace, std::uint64_t events) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;  // last ticks, events
  each_thread(trace, [&](const reader::Thread&, std::span<const reader::StoredBlock> blocks) {
    for (const reader::StoredBlock& block : blocks) all.emplace_back(block.last_ticks(), block.size());
  });
  std::sort(all.begin(), all.end(), std::greater<>());
  std::uint64_t found = 0;
  for (const auto& [ticks, size] : all)
    if ((found += size) >= events) return ticks;
  return 0;
}

// Rows are in preorder: what is under way is the last call that began by then, or around it.
std::vector<reader::CallUnderWay> calls_under_way(const CallColumns& calls, std::uint64_t ticks) {
  std::vector<reader::CallUnderWay> found;
  const auto behind = std::upper_bound(calls.begin.begin(), calls.begin.end(), ticks);
  if (behind == calls.begin.begin()) return found;
  for (auto row = static_cast<std::uint32_t>(behind - calls.begin.begin() - 1); row != reader::kNoParent;
       row = calls.parent[row]) {
    const std::uint64_t end = calls.begin[row] + calls.duration[row];
    const bool open = (calls.marks[row] & reader::kCallOpenEnd) != 0 && end >= ticks;
    if (end > ticks || open) found.push_back({calls.begin[row], calls.function[row]});
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// How many of a thread's first blocks ended before `ticks`; at least one stays.
std::size_t blocks_before(std::span<const reader::StoredBlock> blocks, std::uint64_t ticks) {
  std::size_t count = 0;
  while (count + 1 < blocks.size() && blocks[count].last_ticks() < ticks) ++count;
  return count;
}

}  // namespace

reader::LeftOut newest_part(const reader::Trace& trace, const TraceIndex& before, const reader::LeftOut& left_out,
                            std::uint64_t events) {
  if (events_behind(trace, left_out) <= 2 * events) return left_out;
  const std::uint64_t from = time_of_newest(trace, events);
  std::map<Key, const ThreadIndex*> known;
  for (const ThreadIndex& thread : before.threads()) known.emplace(key_of(*thread.thread), &thread);
  reader::LeftOut part;
  each_thread(trace, [&](const reader::Thread& thread, std::span<const reader::StoredBlock> blocks) {
    const auto found = known.find(key_of(thread));
    // A fiber's lane is made of pieces of threads, with events of its own between them.
    if (found == known.end() || thread.fiber) return;
    const std::size_t count = blocks_before(blocks, std::min(from, found->second->last_ticks));
    const auto last = left_out.find(key_of(thread));
    if (last != left_out.end() && last->second.blocks >= count) {
      part.insert(*last);
    } else if (count != 0) {
      const std::uint64_t until = blocks[count - 1].last_ticks();
      part[key_of(thread)] = {count, until, calls_under_way(found->second->calls, until)};
    }
  });
  return part;
}

}  // namespace karst::engine
