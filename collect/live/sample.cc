// SPDX-License-Identifier: MIT
#include "collect/live/sample.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "arch/cpu.h"

namespace karst::collect {

using namespace format;

SampledFunction& ThreadSample::function(std::uint32_t id) {
  SampledFunction& f = functions_[id];
  f.id = id;
  return f;
}

bool ThreadSample::tail_owner(std::uint32_t id, std::uint32_t& owner) const {
  const std::uint32_t found = tail_owner_(id);
  if (found != 0) owner = found;
  return found != 0;
}

void ThreadSample::consume(std::span<const Event> events, std::uint64_t block_ticks, std::uint64_t to) {
  walk_within(events.data(), events.size(), block_ticks, from_, to);
}

void ThreadSample::finish(std::uint64_t to) {
  while (top_ != 0) end_top(to, walk::Way::kUnseen);
}

void ThreadSample::began(Open& open) {
  ++calls_;
  ++function(open.function).calls;
  ++depth_[open.function];
}

std::uint32_t ThreadSample::resumed(Open& open, const Open*, std::size_t) {
  open.extra = {};  // its time so far was counted when its stack was left
  ++depth_[open.function];
  return new_serial();
}

void ThreadSample::ended(Open* stack, std::size_t at, std::uint64_t ticks, walk::Way) {
  const Open& open = stack[at];
  const std::uint64_t duration = ticks > open.begin ? ticks - open.begin : 0;
  SampledFunction& f = function(open.function);
  f.self_ticks += duration > open.extra.ticks ? duration - open.extra.ticks : 0;
  if (--depth_[open.function] == 0) f.total_ticks += duration;
  (at != 0 ? stack[at - 1].extra.ticks : claimed_) += duration;
}

// It was around all that the window has so far.
void ThreadSample::exit_unentered(std::uint32_t id, std::uint64_t ticks, walk::Way) {
  const std::uint64_t duration = ticks > from_ ? ticks - from_ : 0;
  SampledFunction& f = function(id);
  f.self_ticks += duration > claimed_ ? duration - claimed_ : 0;
  f.total_ticks = duration;
  claimed_ = duration;
}

Sample sample(const ArenaView& arena, const std::vector<ArenaBlock>& all_blocks, std::uint64_t from,
              std::size_t most_blocks) {
  Sample result;
  result.to = arch::time_stamp();
  result.from = from;
  // Each thread's blocks: a block ends where the next one begins.
  std::map<std::uint32_t, std::vector<ArenaBlock>> threads;
  for (const ArenaBlock& block : all_blocks) threads[block.thread].push_back(block);
  for (auto& [index, blocks] : threads) {
    std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    std::size_t first = blocks.size();
    while (first != 0 && (first == blocks.size() || blocks[first].ticks > from) &&
           (first == blocks.size() || blocks[first].sequence == blocks[first - 1].sequence + 1))
      --first;
    result.blocks += blocks.size() - first;
    blocks.erase(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(first));
  }
  const std::size_t share = threads.empty() ? 0 : std::max<std::size_t>(1, most_blocks / threads.size());
  std::unordered_map<std::uint32_t, SampledFunction> functions;
  std::vector<Event> buffer;
  std::size_t read = 0;
  for (auto& [index, blocks] : threads) {
    if (blocks.size() > share) blocks.erase(blocks.begin(), blocks.end() - static_cast<std::ptrdiff_t>(share));
    if (blocks.empty() || read >= most_blocks) continue;
    const std::uint64_t begin = std::max(from, blocks[0].ticks);
    std::uint64_t calls = 0;
    bool any = false;
    // A block that was recycled meanwhile is a gap.
    for (std::size_t i = 0; i < blocks.size();) {
      ThreadSample part([&arena](std::uint32_t id) { return arena.tail_owner(id); }, std::max(begin, blocks[i].ticks),
                        blocks[i].sequence == 0 && blocks[i].ticks >= from && !arena.began_late());
      for (bool gap = false; i < blocks.size() && !gap; ++i, ++read) {
        const auto events = arena.read(blocks[i], buffer);
        gap = events.empty();
        part.consume(events, blocks[i].ticks, result.to);
      }
      if (!part.any()) continue;
      part.finish(i == blocks.size() ? result.to : part.latest());
      any = true;
      calls += part.calls();
      for (const auto& [id, f] : part.functions()) {
        SampledFunction& sum = functions[id];
        sum.id = id;
        sum.calls += f.calls;
        sum.self_ticks += f.self_ticks;
        sum.total_ticks += f.total_ticks;
      }
    }
    if (!any) continue;
    const std::uint64_t covered = result.to > begin ? result.to - begin : 0;
    result.calls += calls;
    if (covered != 0) result.calls_per_tick += static_cast<double>(calls) / static_cast<double>(covered);
    result.threads.push_back({index, calls, covered});
  }
  result.blocks_read = read;
  for (auto& [id, f] : functions) result.functions.push_back(f);
  std::sort(result.functions.begin(), result.functions.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return result;
}

}  // namespace karst::collect
