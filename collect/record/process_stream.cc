// SPDX-License-Identifier: MIT
#include "collect/record/process_stream.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "collect/record/inherited.h"
#include "collect/record/range.h"
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

/// Those words of a block which its thread may be writing to that will not change: nothing behind a slot that is
/// empty yet, and no note that may lack words.
std::span<const format::Event> whole_part(std::span<const format::Event> events) {
  std::size_t count = static_cast<std::size_t>(std::find(events.begin(), events.end(), 0) - events.begin());
  std::size_t last = count;
  while (last != 0 && !format::event_has_time(events[last - 1])) --last;
  if (last == 0 || last != count || format::event_is_mark(events[last - 1])) count = std::max<std::size_t>(last, 1) - 1;
  return events.first(count);
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

void ProcessStream::begin(const ArenaView& arena) {
  if (!trace_->blocks() || !trace_->failure().empty()) return;
  if (auto writer = ArenaWriter::of(arena)) writer->set_blocking(true);
}

void ProcessStream::unblock(const ArenaView& arena) {
  taking_.reset();
  if (!trace_->blocks()) return;
  if (auto writer = ArenaWriter::of(arena)) writer->set_blocking(false);
}

void ProcessStream::begin_forked(const OpenCalls& inherited) {
  inherited_ = inherited;
  ids_.emplace();
}

ProcessStream::Taken& ProcessStream::taken_of(std::uint32_t thread) {
  if (const auto at = taken_.find(thread); at != taken_.end()) return at->second;
  const auto tail_owner = [this](std::uint32_t id) { return arena_->tail_owner(id); };
  Taken& taken = taken_.emplace(thread, Taken{CallCounter(tail_owner, arena_->min_duration_ticks()), {}}).first->second;
  taken.number = late_;
  if (late_ != 0) taken.open.forget();
  return taken;
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
  Taken& taken = taken_of(thread);
  CallCounter& counter = taken.counter;
  taken.open = inherited_;
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
  taken.number = write_open_calls({events, ticks}, {index_, thread}, inherited_.complete(), trace_->writer());
  taken.base = {inherited_, taken.number};
}

void ProcessStream::pass_over(const ArenaBlock& block) {
  Taken& taken = taken_of(block.thread);
  const std::uint64_t gone = block.sequence + 1 - taken.next;
  taken.gone += gone;
  taken.number += gone;
  taken.next = block.sequence + 1;
  taken.begun = 0;
}

bool ProcessStream::take(const ArenaBlock& block, Which which) {
  auto events = arena_->read(block, buffer_);
  if (events.data() == nullptr) {  // it was recycled since it was listed
    pass_over(block);
    return false;
  }
  Taken& taken = taken_of(block.thread);
  if (block.sequence == 0 && taken.begun == 0) begin_thread(block.thread);
  if (block.sequence > taken.next) {
    taken.gone += block.sequence - taken.next;
    taken.number += block.sequence - taken.next;
    taken.next = block.sequence;
    taken.begun = 0;
  }
  events = events.subspan(std::min<std::size_t>(taken.begun, events.size()));
  if (which == Which::kWhole) {
    events = whole_part(events);
    taken.begun += static_cast<std::uint32_t>(events.size());
  } else {
    taken.next = block.sequence + 1;
    taken.begun = 0;
    if (taking_) taking_->note_taken(block);
  }
  if (!events.empty()) put(taken, block, events);
  return true;
}

void ProcessStream::put(Taken& taken, const ArenaBlock& block, std::span<const format::Event> events) {
  const auto has_time = [](format::Event e) { return e != 0 && format::event_has_time(e); };
  const auto first = std::find_if(events.begin(), events.end(), has_time);
  const auto last = std::find_if(events.rbegin(), events.rend(), has_time);
  const std::uint64_t begin = first == events.begin() ? format::event_ticks(*first, block.ticks) : block.ticks;
  taken.counter.count(events, taken.number, begin);
  if (trace_->rotates()) {
    const TailOwner tail_owner = [this](std::uint32_t id) { return arena_->tail_owner(id); };
    taken.open.consume(events, begin, ~std::uint64_t{0}, tail_owner);
  }
  mark_seen(events);
  sums_.events += events.size();
  sums_.first_ticks = std::min(sums_.first_ticks, begin);
  sums_.last_ticks =
      std::max(sums_.last_ticks, last != events.rend() ? format::event_ticks(*last, block.ticks) : block.ticks);
  if (ids_) {
    give_ids(events);
    renumbered_.assign(events.begin(), events.end());
    std::transform(renumbered_.begin(), renumbered_.end(), renumbered_.begin(), *ids_);
    events = renumbered_;
  }
  trace_->writer().add_block(index_, block.thread, taken.number++, begin, events);
  taken.recorded = true;
  trace_->has_events();
}

bool ProcessStream::is_due(const ArenaView& arena) const {
  constexpr std::uint64_t kOftener = 8;  // than the arena is full
  if (!trace_->failure().empty()) return trace_->blocks() && arena.control_now().blocking != 0;
  return arena.blocks_handed_out() - handed_out_ >= arena.block_capacity() / kOftener ||
         (trace_->blocks() && arena.control_now().waits != waits_);
}

std::size_t ProcessStream::drain(const ArenaView& arena) {
  if (!trace_->failure().empty()) {
    unblock(arena);
    return 0;
  }
  arena_ = &arena;
  if (trace_->blocks()) {
    if (auto writer = ArenaWriter::of(arena)) taking_.emplace(*writer);
    waits_ = arena.control_now().waits;
  }
  late_ = arena.began_late() ? 1 : 0;
  handed_out_ = arena.blocks_handed_out();
  seen_.resize(std::max<std::size_t>(seen_.size(), arena.function_count() + std::size_t{1}));
  std::size_t count = 0;
  // Blocks that threads began while the list was made may lack in it, though later ones are there: what is missing
  // twice is gone. Where that is so threads are about to overwrite more, and the second look comes at once.
  if (take_listed(count)) take_listed(count);
  if (taking_) taking_->tell_taken();
  taking_.reset();
  return count;
}

// Where short calls are taken back the last events may be some that will never have been. Blocks that began while they
// were listed may lack: what is behind such a one comes the next time.
void ProcessStream::drain_up_to_now(const ArenaView& arena) {
  drain(arena);
  if (!trace_->failure().empty() || arena.min_duration_ticks() != 0) return;
  for (const ArenaBlock& block : arena.ring_blocks())
    if (block.sequence == taken_of(block.thread).next) take(block, Which::kWhole);
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
    if (block.sequence < next || (block.sequence == newest[block.thread] && !block.left)) continue;
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
  unblock(arena);
  const std::uint64_t waited = trace_->blocks() ? arena.control_now().waited_ticks : 0;
  trace_->add_wait(waited - std::exchange(waited_, waited));
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
    const Base* const base = base_of(place.thread);
    if (base != nullptr && place.sequence < base->number) continue;  // calls that were open
    ArenaBlock& block = blocks.emplace_back();
    block.index = static_cast<std::uint32_t>(i);
    block.thread = place.thread;
    block.sequence = place.sequence;
    block.ticks = place.ticks;
    block.blocks = place.blocks;
  }
  return blocks;
}

void ProcessStream::number_as_in_file(ArenaBlock& block) const {
  const auto at = taken_.find(block.thread);
  if (at == taken_.end()) {
    block.sequence += late_;
    return;
  }
  const Taken& taken = at->second;
  if (block.sequence == taken.next) block.skip = taken.begun;
  block.sequence = block.sequence - taken.next + taken.number;
}

const ProcessStream::Base* ProcessStream::base_of(std::uint32_t thread) const {
  const auto at = taken_.find(thread);
  return at != taken_.end() && at->second.base ? &*at->second.base : nullptr;
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
    counter.count(events, block.sequence, block.ticks, block.blocks);
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
    sums.threads += taken.recorded ? 1 : 0;
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

bool ProcessStream::is_of_file(const reader::Thread& thread) const {
  if (!trace_->rotates() || thread.exited_ticks == 0 || thread.exited_ticks >= trace_->begin()) return true;
  const auto at = taken_.find(thread.index);
  return at != taken_.end() && at->second.recorded;
}

void ProcessStream::complete(reader::Thread& thread) const {
  thread.overwritten_events = gone(thread.index);
  const auto at = taken_.find(thread.index);
  if (at != taken_.end() && at->second.is_excerpt) {
    thread.excerpt = true;
    thread.inherited = at->second.cut;
  } else if (heir_ == thread.index) {
    thread.inherited = inherited_calls_;
  }
}

void ProcessStream::describe(const ArenaView& arena, const Outside& outside) {
  if (!trace_->failure().empty()) return;
  reader::Process now = arena.process_without_functions();
  now.index = index_;
  now.parent = outside.parent;
  now.wait_status = outside.wait_status;
  if (outside.forked) now.flags |= format::kProcessForked;
  if (outside.end_ticks != 0) {
    now.flags |= format::kProcessEnded;
    if (now.end_ticks == 0) now.end_ticks = outside.end_ticks;
  }
  now.overwritten_events = 0;
  std::erase_if(now.threads, [this](const reader::Thread& thread) { return !is_of_file(thread); });
  for (reader::Thread& thread : now.threads) {
    thread.process = index_;
    complete(thread);
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

void ProcessStream::end_file(const ArenaView& arena, const Outside& outside) {
  if (outside.end_ticks != 0) {
    finish(arena);
    return describe(arena, outside);
  }
  drain_up_to_now(arena);
  describe(arena, outside);
  if (!trace_->failure().empty()) return;
  // Calls that are open are so until now.
  const reader::Moment moment =
      moment_of(arena.process_without_functions(), trace_->begin(), read_clock_pair().ticks, "--rotate");
  trace_->writer().add_moments(index_, {&moment, 1});
}

void ProcessStream::add_switches(const std::vector<reader::Switch>& switches) {
  if (trace_->failure().empty()) trace_->writer().add_switches(index_, ids_ ? renumber(switches, *ids_) : switches);
}

void ProcessStream::begin_file(const ArenaView& arena) {
  ++file_;
  index_ = trace_->add_process();
  arena_ = &arena;
  sums_ = {};
  told_.reset();
  described_.clear();
  newly_seen_.clear();
  functions_looked_at_ = 0;
  std::fill(seen_.begin(), seen_.end(), false);
  const reader::Process process = arena.process_without_functions();
  for (const reader::Thread& thread : process.threads)
    if (thread.exited_ticks != 0 && thread.exited_ticks < trace_->begin())
      if (const auto at = taken_.find(thread.index); at != taken_.end()) at->second.open = OpenCalls();
  for (auto& [thread, taken] : taken_) begin_inside(thread, taken);
}

// A call that began shortly before the file keeps its begin, so that a slow one is seen as what it was. Those around
// them, which a thread may be in for days, begin with the file, as in an excerpt.
void ProcessStream::begin_inside(std::uint32_t thread, Taken& taken) {
  constexpr auto kAtMostQuiet = std::chrono::milliseconds(100);
  const std::uint64_t earliest = trace_->earliest();
  const std::vector<OpenItem> items = taken.open.items();
  const auto young = std::find_if(items.rbegin(), items.rend(), [&](const OpenItem& i) { return i.ticks < earliest; });
  const auto first_young = static_cast<std::size_t>(items.rend() - young);
  const std::uint64_t last = std::max(taken.open.latest_ticks(), trace_->begin() - trace_->to_ticks(kAtMostQuiet));
  const std::uint64_t cut_at = first_young != items.size() ? items[first_young].ticks : std::min(last, trace_->begin());
  taken.counter =
      CallCounter([this](std::uint32_t id) { return arena_->tail_owner(id); }, arena_->min_duration_ticks());
  taken.cut = count_calls({items.data(), first_young});
  taken.gone = 0;
  taken.recorded = false;
  taken.is_excerpt = true;
  std::vector<format::Event> events;
  std::vector<std::uint64_t> ticks;
  for (std::size_t i = 0; i < items.size(); ++i) {
    ticks.push_back(i < first_young ? cut_at : items[i].ticks);
    const std::array event{event_of(items[i], ticks.back())};
    taken.counter.begin_with(event, ticks.back(), taken.open.complete());
    mark_seen(event);
    events.push_back(ids_ ? (*ids_)(event[0]) : event[0]);
  }
  sums_.events += events.size();
  taken.number = write_open_calls({events, ticks}, {index_, thread}, taken.open.complete(), trace_->writer());
  taken.base = {taken.open, taken.number};
}

}  // namespace karst::collect
