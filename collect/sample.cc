#include "collect/sample.h"

#include <x86intrin.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace karst::collect {

using namespace format;

namespace {

/// One thread's events in the window, with the calls that they are in. Each event takes the same time, whatever the
/// process says: open calls are found by what they are calls of, not by a search of the stack.
class Walk {
 public:
  Walk(const ArenaView& arena, std::unordered_map<std::uint32_t, SampledFunction>& functions, std::uint64_t from)
      : arena_(arena), functions_(functions), begin_(from), last_(from) {}

  void events(std::span<const Event> events, std::uint64_t block_ticks, std::uint64_t to) {
    for (const Event e : events) {
      if (e == 0 || event_is_mark(e)) continue;
      const std::uint64_t ticks = event_ticks(e, block_ticks);
      if (ticks < begin_ || ticks > to) continue;
      pass(ticks);
      const std::uint32_t id = event_function(e);
      if (event_is_exit(e))
        leave(id, ticks);
      else
        enter(id, ticks);
    }
  }
  void end(std::uint64_t to) {
    pass(to);
    while (!stack_.empty()) pop(to);
  }
  std::uint64_t calls() const { return calls_; }
  bool any() const { return any_; }

 private:
  struct Open {
    std::uint32_t id;
    std::uint64_t begin;
    std::uint64_t code;
  };
  /// What an exit has in common with its enter, a tail call's exit too, which has an id of its own: the address.
  std::uint64_t code_of(std::uint32_t id) const {
    const std::uint64_t address = arena_.address_of(id);
    return address != 0 ? address : ~std::uint64_t{id};
  }
  SampledFunction& function(std::uint32_t id) {
    SampledFunction& f = functions_[id];
    f.id = id;
    return f;
  }
  void pass(std::uint64_t ticks) {
    any_ = true;
    const std::uint64_t by = ticks > last_ ? ticks - last_ : 0;
    last_ = std::max(last_, ticks);
    if (stack_.empty())
      unclaimed_ += by;  // of the call that turns out to have been open all the time
    else
      function(stack_.back().id).self_ticks += by;
  }
  void enter(std::uint32_t id, std::uint64_t ticks) {
    ++calls_;
    ++function(id).calls;
    const std::uint64_t code = code_of(id);
    places_[code].push_back(stack_.size());
    stack_.push_back({id, ticks, code});
    ++depth_[id];
  }
  void pop(std::uint64_t ticks) {
    const Open open = stack_.back();
    stack_.pop_back();
    places_[open.code].pop_back();
    if (--depth_[open.id] == 0) function(open.id).total_ticks += ticks > open.begin ? ticks - open.begin : 0;
  }
  void leave(std::uint32_t id, std::uint64_t ticks) {
    const auto found = places_.find(code_of(id));
    if (found != places_.end() && !found->second.empty()) {
      const std::size_t keep = found->second.back();
      while (stack_.size() > keep) pop(ticks);
      return;
    }
    if (!stack_.empty()) return;
    SampledFunction& f = function(id);
    f.self_ticks += unclaimed_;
    f.total_ticks += ticks - begin_;
    unclaimed_ = 0;
  }

  const ArenaView& arena_;
  std::unordered_map<std::uint32_t, SampledFunction>& functions_;
  std::uint64_t begin_;
  std::uint64_t last_;
  std::uint64_t unclaimed_ = 0;
  std::uint64_t calls_ = 0;
  bool any_ = false;
  std::vector<Open> stack_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> places_;  ///< in stack_, by code
  std::unordered_map<std::uint32_t, std::uint32_t> depth_;
};

}  // namespace

Sample sample(const ArenaView& arena, const std::vector<ArenaBlock>& all_blocks, std::uint64_t from,
              std::size_t most_blocks) {
  Sample result;
  result.to = __rdtsc();
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
    Walk walk(arena, functions, begin);
    for (const ArenaBlock& block : blocks) {
      walk.events(arena.read(block, buffer), block.ticks, result.to);
      ++read;
    }
    if (!walk.any()) continue;
    walk.end(result.to);
    const std::uint64_t covered = result.to > begin ? result.to - begin : 0;
    result.calls += walk.calls();
    if (covered != 0) result.calls_per_tick += static_cast<double>(walk.calls()) / static_cast<double>(covered);
    result.threads.push_back({index, walk.calls(), covered});
  }
  result.blocks_read = read;
  for (auto& [id, f] : functions) result.functions.push_back(f);
  std::sort(result.functions.begin(), result.functions.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return result;
}

}  // namespace karst::collect
