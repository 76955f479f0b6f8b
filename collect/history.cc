#include "collect/history.h"

#include <algorithm>
#include <set>
#include <utility>

namespace karst::collect {

using namespace format;

void History::detach() {
  if (!arena_) return;
  auto copy = std::make_unique<Copy>();
  copy->start = arena_->start();
  std::vector<bool> seen(arena_->function_count() + std::size_t{1});
  std::vector<Event> buffer;
  for (ArenaBlock block : arena_->blocks()) {
    const auto events = arena_->read(block, buffer);
    if (events.empty()) continue;
    for (const Event e : events)
      if (const std::uint32_t id = event_function(e); id < seen.size()) seen[id] = true;
    block.index = static_cast<std::uint32_t>(copy->blocks.size());
    copy->blocks.push_back(block);
    copy->begins.push_back(copy->events.size());
    copy->events.insert(copy->events.end(), events.begin(), events.end());
  }
  copy->begins.push_back(copy->events.size());
  copy->events.shrink_to_fit();
  // A tail call's exit has an id of its own, which means nothing without its function's.
  std::set<std::uint64_t> tail_exits;
  copy->process = arena_->process_without_functions();
  for (std::uint32_t id = 1; id < seen.size(); ++id)
    if (seen[id] && arena_->is_tail_exit(id)) tail_exits.insert(arena_->address_of(id));
  for (std::uint32_t id = 1; id < seen.size(); ++id) {
    if (!seen[id] && (tail_exits.empty() || !tail_exits.contains(arena_->address_of(id)))) continue;
    if (auto f = arena_->function(id, copy->process)) copy->process.functions.push_back(std::move(*f));
  }
  copy_ = std::move(copy);
  arena_.reset();
}

reader::Process History::process() const { return arena_ ? arena_->process() : copy_->process; }

std::vector<reader::Thread> History::threads() const {
  return arena_ ? arena_->process_without_functions().threads : copy_->process.threads;
}

reader::ClockPair History::start() const { return arena_ ? arena_->start() : copy_->start; }

std::vector<ArenaBlock> History::blocks() const { return arena_ ? arena_->blocks() : copy_->blocks; }

std::span<const Event> History::read(const ArenaBlock& block, std::vector<Event>& buffer) const {
  if (arena_) return arena_->read(block, buffer);
  const std::size_t begin = copy_->begins[block.index];
  return std::span(copy_->events).subspan(begin, copy_->begins[block.index + std::size_t{1}] - begin);
}

std::uint64_t History::address_of(std::uint32_t id) const {
  if (arena_) return arena_->address_of(id);
  const auto& functions = copy_->process.functions;
  const auto at = std::lower_bound(functions.begin(), functions.end(), id,
                                   [](const reader::Function& f, std::uint32_t wanted) { return f.id < wanted; });
  return at != functions.end() && at->id == id ? at->address : 0;
}

std::uint32_t History::function_count() const {
  return arena_ ? arena_->function_count() : static_cast<std::uint32_t>(copy_->process.functions.size());
}

OpenCalls OpenCallsOf::at(const History& history, std::uint32_t tid, std::uint64_t ticks) {
  const std::vector<reader::Thread> threads = history.threads();
  // A thread id may have been used again: the latest that had begun by then.
  const reader::Thread* thread = nullptr;
  for (const reader::Thread& t : threads)
    if (t.tid == tid && t.joined_ticks <= ticks && (thread == nullptr || t.joined_ticks > thread->joined_ticks))
      thread = &t;
  const auto inherited = inherited_.find(tid);
  if (thread == nullptr) return inherited == inherited_.end() ? OpenCalls() : inherited->second;

  const auto [at, fresh_point] = points_.try_emplace(thread->index);
  Point& point = at->second;
  if (fresh_point && inherited != inherited_.end()) point.open = inherited->second;
  std::vector<ArenaBlock> blocks = history.blocks();
  std::erase_if(blocks, [&](const ArenaBlock& b) {
    return b.thread != thread->index || b.sequence < point.next_sequence || b.ticks > ticks;
  });
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  const OpenCalls::AddressOf address_of = [&history](std::uint32_t id) { return history.address_of(id); };
  std::vector<Event> buffer;
  OpenCalls open = point.open;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const ArenaBlock& block = blocks[i];
    const auto events = history.read(block, buffer);
    if (events.empty()) continue;
    if (block.sequence != point.next_sequence) point.open.forget();
    const bool whole = i + 1 < blocks.size();  // the thread went on to another block by then
    open = point.open;
    open.consume(events, block.ticks, whole ? ~std::uint64_t{0} : ticks, address_of);
    if (!whole) break;
    point.open = open;
    point.next_sequence = block.sequence + 1;
  }
  return open;
}

}  // namespace karst::collect
