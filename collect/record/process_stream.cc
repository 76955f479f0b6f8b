// SPDX-License-Identifier: MIT
#include "collect/record/process_stream.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "collect/record/inherited.h"
#include "format/trace.h"

namespace karst::collect {
namespace {

/// Whether the table of modules has to say more than it does.
bool has_changed(const reader::Module& a, const reader::Module& b) {
  return std::tie(a.loaded_ticks, a.unloaded_ticks, a.path) != std::tie(b.loaded_ticks, b.unloaded_ticks, b.path) ||
         a.flags() != b.flags();
}

bool has_changed(const reader::Thread& a, const reader::Thread& b) {
  return std::tie(a.tid, a.exited, a.overwritten_events, a.lost_events, a.inherited, a.name) !=
         std::tie(b.tid, b.exited, b.overwritten_events, b.lost_events, b.inherited, b.name);
}

bool has_changed(const reader::Process& a, const reader::Process& b) {
  return std::tie(a.flags, a.lost_events, a.overwritten_events, a.parent, a.name) !=
             std::tie(b.flags, b.lost_events, b.overwritten_events, b.parent, b.name) ||
         a.cost.call != b.cost.call;
}

/// Those of `now` that are not so in `before`.
template <typename Of>
std::vector<Of> changes(const std::vector<Of>& before, const std::vector<Of>& now) {
  std::unordered_map<std::uint32_t, const Of*> known;
  for (const Of& one : before) known.emplace(one.index, &one);
  std::vector<Of> changed;
  for (const Of& one : now)
    if (const auto at = known.find(one.index); at == known.end() || has_changed(*at->second, one))
      changed.push_back(one);
  return changed;
}

}  // namespace

ProcessStream::ProcessStream(std::shared_ptr<GrowingTrace> trace)
    : trace_(std::move(trace)), index_(trace_->add_process()) {}

void ProcessStream::begin_forked(const OpenCalls& inherited) {
  inherited_ = inherited;
  ids_.emplace();
}

ProcessStream::Taken& ProcessStream::taken_of(std::uint32_t thread) {
  if (const auto at = taken_.find(thread); at != taken_.end()) return at->second;
  const auto tail_owner = [this](std::uint32_t id) { return arena_->tail_owner(id); };
  return taken_.emplace(thread, Taken{CallCounter(tail_owner, arena_->min_duration_ticks())}).first->second;
}

// A function is given an id when it is first met, and with a tail call's exit its function is.
void ProcessStream::give_ids(std::span<const format::Event> events) {
  const std::uint32_t count = arena_->function_count();
  for (const format::Event event : events) {
    const std::uint32_t id = format::named_function(event);
    if (id == 0 || id > count || ids_->knows(id)) continue;
    ids_->add(id);
    if (const std::uint32_t owner = arena_->is_tail_exit(id) ? arena_->tail_owner(id) : 0; owner != 0) ids_->add(owner);
  }
}

void ProcessStream::mark_seen(std::span<const format::Event> events) {
  for (const format::Event event : events) {
    const std::uint32_t id = format::named_function(event);
    if (id >= seen_.size() || seen_[id]) continue;
    seen_[id] = true;
    newly_seen_.push_back(id);
  }
}

// The calls that a forked child was inside of come before what its first thread did, if that is known from its start.
void ProcessStream::begin_thread(std::uint32_t thread) {
  if (!ids_ || heir_) return;
  const reader::Process process = arena_->process_without_functions();
  const bool is_heir = std::any_of(process.threads.begin(), process.threads.end(),
                                   [&](const reader::Thread& t) { return t.index == thread && t.tid == process.pid; });
  if (!is_heir) return;
  heir_ = thread;
  std::vector<format::Event> events;
  std::vector<std::uint64_t> ticks;
  CallCounter& counter = taken_of(thread).counter;
  for (const OpenItem& item : inherited_.items()) {
    const std::array event{event_of(item, item.ticks)};
    counter.begin_with(event, item.ticks, inherited_.complete());
    mark_seen(event);
    give_ids(event);
    events.push_back((*ids_)(event[0]));
    ticks.push_back(item.ticks);
    inherited_calls_ += item.function != 0 ? 1 : 0;
  }
  sums_.calls -= counter.calls();  // which are the parent's
  sums_.events += events.size();
  inherited_blocks_ = write_open_calls({events, ticks}, {index_, thread}, inherited_.complete(), trace_->writer());
}

void ProcessStream::pass_over(const ArenaBlock& block) {
  Taken& taken = taken_of(block.thread);
  taken.gone += block.sequence + 1 - taken.next;
  taken.next = block.sequence + 1;
}

bool ProcessStream::take(const ArenaBlock& block) {
  auto events = arena_->read(block, buffer_);
  if (events.data() == nullptr) {  // it was recycled since it was listed
    pass_over(block);
    return false;
  }
  Taken& taken = taken_of(block.thread);
  if (block.sequence == 0) begin_thread(block.thread);
  if (block.sequence > taken.next) taken.gone += block.sequence - taken.next;
  taken.next = block.sequence + 1;
  if (events.empty()) return true;
  taken.counter.count(events, block.sequence + late_, block.ticks);
  mark_seen(events);
  sums_.events += events.size();
  sums_.first_ticks = std::min(sums_.first_ticks, block.ticks);
  const auto has_time = [](format::Event e) { return e != 0 && format::event_has_time(e); };
  const auto last = std::find_if(events.rbegin(), events.rend(), has_time);
  sums_.last_ticks =
      std::max(sums_.last_ticks, last != events.rend() ? format::event_ticks(*last, block.ticks) : block.ticks);
  if (ids_) {
    give_ids(events);
    renumbered_.assign(events.begin(), events.end());
    std::transform(renumbered_.begin(), renumbered_.end(), renumbered_.begin(), *ids_);
    events = renumbered_;
  }
  trace_->writer().add_block(index_, block.thread, block.sequence + shift_of(block.thread), block.ticks, events);
  trace_->has_events();
  return true;
}

bool ProcessStream::is_due(const ArenaView& arena) const {
  constexpr std::uint64_t kOftener = 8;  // than the arena is full
  return trace_->failure().empty() && arena.blocks_handed_out() - handed_out_ >= arena.block_capacity() / kOftener;
}

std::size_t ProcessStream::drain(const ArenaView& arena) {
  if (!trace_->failure().empty()) return 0;
  arena_ = &arena;
  late_ = arena.began_late() ? 1 : 0;
  handed_out_ = arena.blocks_handed_out();
  seen_.resize(std::max<std::size_t>(seen_.size(), arena.function_count() + std::size_t{1}));
  std::size_t count = 0;
  // Blocks that threads began while the list was made may lack in it, though later ones are there: what is missing
  // twice is gone. Where that is so threads are about to overwrite more, and the second look comes at once.
  if (take_listed(count)) take_listed(count);
  return count;
}

bool ProcessStream::take_listed(std::size_t& count) {
  const std::vector<ArenaBlock> blocks = arena_->ring_blocks();
  std::map<std::uint32_t, std::uint64_t> newest;  // which the thread may write to
  for (const ArenaBlock& block : blocks) {
    std::uint64_t& last = newest[block.thread];
    last = std::max(last, block.sequence);
  }
  std::map<std::uint32_t, std::uint64_t> missing;
  for (const ArenaBlock& block : blocks) {
    const auto taken = taken_.find(block.thread);
    const std::uint64_t next = taken != taken_.end() ? taken->second.next : 0;
    if (block.sequence < next || block.sequence == newest[block.thread]) continue;
    if (block.sequence != next && (taken == taken_.end() || taken->second.missing != next + 1)) {
      missing.emplace(block.thread, next);
      continue;
    }
    if (take(block)) ++count;
  }
  for (auto& [thread, taken] : taken_) taken.missing = 0;
  for (const auto& [thread, next] : missing) taken_of(thread).missing = next + 1;
  return !missing.empty();
}

void ProcessStream::finish(const ArenaView& arena) {
  drain(arena);
  arena_ = &arena;
  for (const ArenaBlock& block : arena.ring_blocks()) {
    if (block.sequence < taken_of(block.thread).next) continue;
    if (trace_->failure().empty())
      take(block);
    else
      pass_over(block);
  }
}

std::vector<ArenaBlock> ProcessStream::blocks() const {
  trace_->writer().flush();
  std::vector<ArenaBlock> blocks;
  const auto& places = trace_->places(index_);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const GrowingTrace::Place& place = places[i];
    const std::uint64_t shift = shift_of(place.thread);
    if (place.sequence < shift) continue;  // calls that were open
    ArenaBlock& block = blocks.emplace_back();
    block.index = static_cast<std::uint32_t>(i);
    block.thread = place.thread;
    block.sequence = place.sequence - shift;
    block.ticks = place.ticks;
    block.blocks = place.blocks;
  }
  return blocks;
}

std::span<const format::Event> ProcessStream::read(std::size_t number) {
  if (!trace_->read(trace_->places(index_)[number], payload_) || !unpacker_.unpack(payload_)) return {};
  if (!ids_) return unpacker_.events();
  const auto events = unpacker_.events();
  renumbered_.assign(events.begin(), events.end());
  for (format::Event& event : renumbered_) event = ids_->old(event);
  return renumbered_;
}

bool ProcessStream::has(std::uint32_t thread, std::uint64_t sequence) const {
  const auto taken = taken_.find(thread);
  return taken != taken_.end() && sequence < taken->second.next;
}

std::uint64_t ProcessStream::gone(std::uint32_t thread) const {
  const auto taken = taken_.find(thread);
  return taken != taken_.end() ? taken->second.gone * format::kEventsPerBlock : 0;
}

// Of what the file could not take nothing is left but its number.
StreamSums ProcessStream::sums_of_what_is_there(const TailOwner& tail_owner, std::uint64_t min_duration) {
  StreamSums sums;
  std::vector<ArenaBlock> all = blocks();
  std::sort(all.begin(), all.end(), [](const ArenaBlock& a, const ArenaBlock& b) {
    return std::tie(a.thread, a.sequence) < std::tie(b.thread, b.sequence);
  });
  std::map<std::uint32_t, CallCounter> counters;
  for (const ArenaBlock& block : all) {
    const std::span<const format::Event> events = read(block.index);
    CallCounter& counter = counters.try_emplace(block.thread, tail_owner, min_duration).first->second;
    counter.count(events, block.sequence + late_, block.ticks, block.blocks);
    sums.events += events.size();
    sums.first_ticks = std::min(sums.first_ticks, block.ticks);
    sums.last_ticks = std::max(sums.last_ticks, block.ticks);
  }
  for (const auto& [thread, counter] : counters) {
    sums.calls += counter.calls();
    sums.notes += counter.notes();
  }
  sums.threads = counters.size();
  return sums;
}

StreamSums ProcessStream::sums(const TailOwner& tail_owner, std::uint64_t min_duration) {
  if (!trace_->failure().empty()) return sums_of_what_is_there(tail_owner, min_duration);
  StreamSums sums = sums_;
  for (const auto& [thread, taken] : taken_) {
    sums.calls += taken.counter.calls();
    sums.notes += taken.counter.notes();
    sums.threads += taken.next > taken.gone ? 1 : 0;
  }
  return sums;
}

void ProcessStream::describe_functions(const ArenaView& arena, const reader::Process& process) {
  std::vector<reader::Function> functions;
  const auto add = [&](std::uint32_t id, std::uint32_t number) {
    if (described_.size() <= number) described_.resize(number + std::size_t{1});
    if (described_[number]) return;
    auto function = arena.function(id, process);
    if (!function) return;
    described_[number] = true;
    function->id = number;
    functions.push_back(std::move(*function));
  };
  if (ids_) {
    for (auto id = static_cast<std::uint32_t>(described_.size()); id <= ids_->size(); ++id)
      if (id != 0) add(ids_->before(id), id);
  } else {
    const std::uint32_t count = arena.function_count();
    for (std::uint32_t id = functions_looked_at_ + 1; id <= count; ++id) {
      const auto function = arena.function(id, process);
      if (function && !process.modules[function->module].patched) add(id, id);
    }
    functions_looked_at_ = count;
    for (const std::uint32_t id : newly_seen_) {
      add(id, id);
      if (const std::uint32_t owner = arena.is_tail_exit(id) ? arena.tail_owner(id) : 0; owner != 0) add(owner, owner);
    }
    newly_seen_.clear();
  }
  trace_->writer().add_functions(index_, functions);
}

void ProcessStream::describe(const ArenaView& arena, const Origin& origin) {
  if (!trace_->failure().empty()) return;
  reader::Process now = arena.process_without_functions();
  now.index = index_;
  now.parent = origin.parent;
  if (origin.forked) now.flags |= format::kProcessForked;
  now.overwritten_events = 0;
  for (reader::Thread& thread : now.threads) {
    thread.process = index_;
    thread.overwritten_events = gone(thread.index);
    thread.inherited = inherited_by(thread.index);
    now.overwritten_events += thread.overwritten_events;
  }
  static const reader::Process kNothing;
  const reader::Process& before = told_ ? *told_ : kNothing;
  writing::TraceWriter& writer = trace_->writer();
  if (!told_ || has_changed(before, now)) {
    writer.add_processes({&now, 1});
    writer.add_mode(now);
    writer.add_cost(now);
  }
  writer.add_modules(index_, changes(before.modules, now.modules));
  writer.add_threads(index_, changes(before.threads, now.threads));
  describe_functions(arena, now);
  told_ = std::move(now);
}

}  // namespace karst::collect
