// SPDX-License-Identifier: MIT
#include "collect/record/history.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"

namespace karst::collect {

using namespace format;

namespace {
constexpr std::uint32_t kKept = 0xffffffffU;  // the index of blocks that lie here, not in the arena
constexpr std::uint64_t kStreamed = 1;        // generation of blocks in the trace: no block is one that is odd
}  // namespace

History::History(reader::Process process, const ClockPair& start, std::optional<sandbox::Credentials> owner)
    : copy_(std::make_unique<Copy>()) {
  copy_->process = std::move(process);
  copy_->process.functions.resize(1);
  copy_->process.start_ticks = start.ticks;
  copy_->start = start;
  copy_->begins = {0};
  copy_->owner = std::move(owner);
}

void History::keep_all(const std::shared_ptr<GrowingTrace>& trace) {
  stream_ = std::make_unique<ProcessStream>(trace);
  if (arena_) stream_->begin(*arena_);
}

bool History::drain_if_due() {
  if (!stream_ || !arena_ || !stream_->is_due(*arena_)) return false;
  stream_->drain(*arena_);
  return true;
}

void History::drain_and_describe(const ProcessStream::Outside& outside) {
  if (!stream_ || !arena_) return;
  stream_->drain_up_to_now(*arena_);
  stream_->describe(*arena_, outside);
}

void History::end_file(const ProcessStream::Outside& outside) {
  if (!stream_) return;
  if (arena_) stream_->end_file(*arena_, outside);
  stream_->add_switches(switches());
}

void History::begin_file() {
  if (stream_ && arena_) stream_->begin_file(*arena_);
}

void History::finish_stream() {
  if (stream_ && arena_) stream_->finish(*arena_);
}

void History::detach() {
  if (!arena_) return;
  auto copy = std::make_unique<Copy>();
  copy->start = arena_->start();
  std::vector<bool> seen(arena_->function_count() + std::size_t{1});
  finish_stream();
  if (stream_) std::copy_n(stream_->seen().begin(), std::min(seen.size(), stream_->seen().size()), seen.begin());
  std::vector<Event> buffer;
  for (ArenaBlock block : arena_->blocks()) {
    if (stream_ && stream_->has(block.thread, block.sequence)) continue;
    const auto events = arena_->read(block, buffer);
    if (events.empty()) continue;
    for (const Event e : events)
      if (const std::uint32_t id = format::named_function(e); id < seen.size()) seen[id] = true;
    block.index = static_cast<std::uint32_t>(copy->blocks.size());
    copy->blocks.push_back(block);
    copy->begins.push_back(copy->events.size());
    copy->events.insert(copy->events.end(), events.begin(), events.end());
  }
  copy->begins.push_back(copy->events.size());
  copy->events.shrink_to_fit();
  copy->counts = arena_->counts();
  copy->uncounted_calls = arena_->uncounted_calls();
  copy->reserving_ticks = arena_->reserving_ticks();
  copy->owner = arena_->owner();
  copy->moments = arena_->moments();
  copy->watch_losses = arena_->watch_losses();
  for (const reader::Moment& moment : copy->moments)
    if (moment.function < seen.size()) seen[moment.function] = true;
  for (std::size_t id = 0; id < copy->counts.size() && id < seen.size(); ++id)
    if (copy->counts[id] != 0) seen[id] = true;
  // A tail call's exit has an id of its own, which means nothing without its function's.
  std::set<std::uint64_t> tail_exits;
  copy->process = arena_->process_without_functions();
  copy->process.switches = arena_->switches();
  for (std::uint32_t id = 1; id < seen.size(); ++id)
    if (seen[id] && arena_->is_tail_exit(id)) {
      tail_exits.insert(arena_->address_of(id));
      copy->tail_owners.emplace(id, arena_->tail_owner(id));
    }
  for (std::uint32_t id = 1; id < seen.size(); ++id) {
    if (!seen[id] && (tail_exits.empty() || !tail_exits.contains(arena_->address_of(id)))) continue;
    if (auto f = arena_->function(id, copy->process)) copy->process.functions.push_back(std::move(*f));
  }
  copy_ = std::move(copy);
  arena_.reset();
}

reader::Process History::process() const {
  reader::Process process = arena_ ? arena_->process() : copy_->process;
  if (!stream_) return process;
  // What was overwritten is in the trace, but what was not taken in time.
  process.overwritten_events = 0;
  std::erase_if(process.threads, [this](const reader::Thread& thread) { return !stream_->is_of_file(thread); });
  for (reader::Thread& thread : process.threads) {
    stream_->complete(thread);
    process.overwritten_events += thread.overwritten_events;
  }
  return process;
}

std::vector<reader::Thread> History::threads() const {
  return arena_ ? arena_->process_without_functions().threads : copy_->process.threads;
}

ClockPair History::start() const { return arena_ ? arena_->start() : copy_->start; }

std::vector<ArenaBlock> History::blocks() const {
  std::vector<ArenaBlock> blocks = arena_ ? arena_->blocks() : copy_->blocks;
  if (stream_) {
    std::erase_if(blocks, [this](const ArenaBlock& b) { return stream_->has(b.thread, b.sequence); });
    for (ArenaBlock& block : blocks) stream_->number_as_in_file(block);
    for (ArenaBlock block : stream_->blocks()) {
      block.generation = kStreamed;
      blocks.push_back(block);
    }
  }
  if (kept_.empty() && !stream_) return blocks;
  std::set<std::pair<std::uint32_t, std::uint64_t>> there;
  for (const ArenaBlock& block : blocks) there.emplace(block.thread, block.sequence);
  for (const auto& [key, kept] : kept_)
    if (!there.contains(key)) blocks.push_back(kept.block);
  std::erase_if(blocks, [this](const ArenaBlock& b) {
    const auto begin = begins_.find(b.thread);
    return begin != begins_.end() && b.sequence < begin->second;
  });
  std::sort(blocks.begin(), blocks.end(), [](const ArenaBlock& a, const ArenaBlock& b) {
    return a.ticks != b.ticks ? a.ticks < b.ticks : a.sequence < b.sequence;
  });
  return blocks;
}

std::uint64_t History::keep(std::uint64_t from, std::uint64_t to, Order order, std::uint64_t most_bytes) {
  if (!arena_ || stream_) return from;
  std::vector<ArenaBlock> blocks = arena_->blocks();
  std::set<std::uint32_t> lack;  // threads of which nothing before `to`, or before some block, is there any more
  for (const ArenaBlock& block : blocks)
    if (block.ticks > to && block.sequence != 0) lack.insert(block.thread);
  std::erase_if(blocks, [to](const ArenaBlock& b) { return b.ticks > to; });
  for (const ArenaBlock& block : blocks) lack.erase(block.thread);
  // A block ends where its thread's next one begins.
  std::map<std::uint32_t, const ArenaBlock*> next;
  std::map<std::uint32_t, const ArenaBlock*> first;
  std::vector<const ArenaBlock*> wanted;
  for (auto at = blocks.rbegin(); at != blocks.rend() && wanted.size() < most_bytes / kBlockSize; ++at) {
    const auto [later, last] = next.try_emplace(at->thread, &*at);
    // The last one is wanted in any case: it says what its thread is inside of.
    if (last || later->second->ticks >= from) {
      wanted.push_back(&*at);
      first[at->thread] = &*at;
    }
    later->second = &*at;
  }
  if (order == Order::kOldestFirst) std::reverse(wanted.begin(), wanted.end());
  std::set<const ArenaBlock*> torn;  // gone before they were read
  std::vector<Event> buffer;
  for (const ArenaBlock* block : wanted) {
    const auto events = arena_->read(*block, buffer);
    if (events.data() == nullptr)
      torn.insert(block);
    else if (!events.empty())
      keep_block(*block, events);
  }
  if (order == Order::kNewestFirst) std::reverse(wanted.begin(), wanted.end());
  std::uint64_t whole_from = from;
  for (const ArenaBlock* block : wanted)
    if (torn.contains(block)) {
      lack.insert(block->thread);
      torn_[block->thread] = std::max(torn_[block->thread], block->sequence + 1);
    } else if (lack.erase(block->thread) != 0) {
      whole_from = std::max(whole_from, block->ticks);
    }
  for (const auto& [thread, block] : first) {
    // What came before it has been recycled, if it is not merely older.
    if (block->sequence != 0 && block->ticks > from && next[thread] == block)
      whole_from = std::max(whole_from, block->ticks);
  }
  return lack.empty() ? whole_from : std::max(whole_from, std::min(to, read_clock_pair().ticks));
}

void History::keep_block(const ArenaBlock& block, std::span<const Event> events) {
  Kept& kept = kept_[{block.thread, block.sequence}];
  kept.end = block.ticks;
  for (const Event e : events)
    if (e != 0 && event_has_time(e)) kept.end = event_ticks(e, block.ticks);
  kept.block = block;
  kept.block.index = kKept;
  kept.events.assign(events.begin(), events.end());
}

std::span<const Event> History::read_kept(const ArenaBlock& block) const {
  const auto kept = kept_.find({block.thread, block.sequence});
  return kept != kept_.end() ? std::span<const Event>(kept->second.events) : std::span<const Event>();
}

std::span<const Event> History::read(const ArenaBlock& block, std::vector<Event>& buffer) const {
  if (block.index == kKept) return read_kept(block);
  if (stream_ && block.generation == kStreamed) return stream_->read(block.index);
  if (arena_) {
    const auto events = arena_->read(block, buffer);
    return events.data() != nullptr ? events : read_kept(block);  // recycled since it was listed
  }
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

std::uint32_t History::tail_owner(std::uint32_t id) const {
  if (arena_) return arena_->tail_owner(id);
  const auto at = copy_->tail_owners.find(id);
  return at != copy_->tail_owners.end() ? at->second : 0;
}

std::vector<reader::Switch> History::switches() const { return arena_ ? arena_->switches() : copy_->process.switches; }

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
  const ProcessStream* const stream = history.stream();
  if (stream != nullptr && (fresh_point || point.file != stream->file())) {
    point.file = stream->file();
    const ProcessStream::Base* const base = stream->base_of(thread->index);
    if (base != nullptr) point = {base->number, base->open, stream->file()};
  }
  std::vector<ArenaBlock> blocks = history.blocks();
  std::erase_if(blocks, [&](const ArenaBlock& b) {
    return b.thread != thread->index || b.sequence < point.next_sequence || b.ticks > ticks;
  });
  std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  const TailOwner tail_owner = [&history](std::uint32_t id) { return history.tail_owner(id); };
  std::vector<Event> buffer;
  // Whole blocks are passed once and for all; the last one, which the thread may be in yet, by a copy.
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
    const auto events = history.read(blocks[i], buffer);
    if (events.empty()) continue;
    if (blocks[i].sequence != point.next_sequence) point.open.forget();
    point.open.consume(events, blocks[i].ticks, ~std::uint64_t{0}, tail_owner);
    point.next_sequence = blocks[i].next_sequence();
  }
  OpenCalls open = point.open;
  if (!blocks.empty()) {
    const ArenaBlock& last = blocks.back();
    if (const auto events = history.read(last, buffer); !events.empty()) {
      if (last.sequence != point.next_sequence) open.forget();
      open.consume(events, last.ticks, ticks, tail_owner);
    }
  }
  open.leave_out_unsure(history.switches(), ticks);
  return open;
}

}  // namespace karst::collect
