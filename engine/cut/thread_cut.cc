// SPDX-License-Identifier: MIT
#include "engine/cut/thread_cut.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace karst::engine {

using format::Event;
using format::Mark;

namespace {

constexpr std::size_t kBlockEvents = 8189;

// Places that no stack pointer is: the lowest page is nobody's.
constexpr std::uint64_t kNowhere = 1;
constexpr std::uint64_t kHome = 2;
constexpr std::uint64_t kUnset = 3;    // as a place to jump to
constexpr std::uint64_t kResumed = 4;  // and those behind it

Event place_word(std::uint64_t place, Mark mark = Mark::kPlace) { return format::make_place(place << 4U, mark); }

}  // namespace

// Writes events in blocks: those of a block share the upper bits of the clock.
class ThreadCut::Sink {
 public:
  Sink(writing::TraceWriter& writer, const ThreadCut& cut, std::uint64_t sequence, std::vector<bool>& seen)
      : writer_(writer),
        process_(cut.process_.index),
        thread_(cut.thread_.index),
        functions_(cut.process_.functions),
        seen_(seen),
        sequence_(sequence) {}

  /// A word and those that belong to it, at a time.
  void put(std::uint64_t ticks, std::span<const Event> words) {
    const std::uint64_t epoch = ticks & ~format::kEventTickMask;
    if (!events_.empty() &&
        (epoch != (ticks_ & ~format::kEventTickMask) || events_.size() + words.size() > kBlockEvents))
      flush();
    if (events_.empty()) ticks_ = ticks;
    events_.insert(events_.end(), words.begin(), words.end());
    last_ = ticks;
    see(words);
  }
  void put(std::uint64_t ticks, Event word) { put(ticks, std::span(&word, 1)); }
  void enter(std::uint64_t ticks, std::uint32_t function) { put(ticks, format::make_event(ticks, false, function)); }
  void switched(std::uint64_t ticks, std::uint64_t from, std::uint64_t to) {
    const Event words[] = {format::make_mark(ticks, Mark::kSwitched), place_word(from), place_word(to)};
    put(ticks, words);
  }
  /// Part of a block as it is.
  void copy(std::uint64_t block_ticks, std::span<const Event> words) {
    flush();
    if (words.empty()) return;
    writer_.add_block(process_, thread_, sequence_++, block_ticks, words);
    last_ = std::max(last_, block_ticks);
    see(words);
  }
  /// `blocks` blocks are missing here.
  void gap(std::uint64_t blocks) {
    flush();
    sequence_ += blocks;
  }
  void flush() {
    if (events_.empty()) return;
    writer_.add_block(process_, thread_, sequence_++, ticks_, events_);
    events_.clear();
  }
  std::uint64_t last() const { return last_; }

 private:
  void see(std::span<const Event> words) {
    for (const Event word : words) {
      const std::uint32_t id = format::named_function(word);
      if (id == 0 || id >= seen_.size()) continue;
      seen_[id] = true;
      // The id of its tail calls' exits has its names from the function.
      const std::uint32_t of = functions_[id].tail_exit ? functions_[id].of : 0;
      if (of != 0 && of < seen_.size()) seen_[of] = true;
    }
  }

  writing::TraceWriter& writer_;
  std::uint32_t process_;
  std::uint32_t thread_;
  std::span<const reader::Function> functions_;
  std::vector<bool>& seen_;
  std::vector<Event> events_;
  std::uint64_t ticks_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t sequence_;
};

ThreadCut::ThreadCut(const Scope& scope, const Scope::Part& part)
    : trace_(scope.index->trace()),
      process_(trace_.processes()[scope.thread(part).thread->process]),
      part_(part),
      read_(trace_.event_reader()),
      blocks_(trace_.blocks(*scope.thread(part).thread)),
      thread_(*scope.thread(part).thread) {
  const TickRange& range = part_.rows.range;
  from_ = first_at(range.begin, {});
  to_ = range.end == std::numeric_limits<std::uint64_t>::max() ? Place{blocks_.size(), 0} : first_at(range.end, from_);
  // An exception's exit stays with its mark.
  const auto mark_before = [&](Place at) {
    return at.event != 0 && format::event_is(events_of(at.block)[at.event - 1], Mark::kUnwound);
  };
  if (mark_before(to_)) --to_.event;
  if (mark_before(from_)) --from_.event;
  from_ = with_values(from_);
  find_state();
  find_values(scope.thread(part));
}

// A call's values are noted right before its enter, and before its exit: they stay with it.
ThreadCut::Place ThreadCut::with_values(Place at) const {
  if (at.block == blocks_.size()) return at;
  const std::span<const Event> events = events_of(at.block);
  std::size_t head = at.event;
  while (head != 0 && format::event_is(events[head - 1], Mark::kNoteWord)) --head;
  if (head < 2 || !format::event_is(events[head - 1], Mark::kNoteHead) ||
      !format::event_is(events[head - 2], Mark::kNote))
    return at;
  const format::NoteHead note = format::note_head(events[head - 1]);
  const bool is_exit = format::event_is_exit(events[at.event]);
  const bool own = note.kind == (is_exit ? format::NoteKind::kReturned : format::NoteKind::kArguments) &&
                   note.name == format::event_function(events[at.event]);
  return own ? Place{at.block, head - 2} : at;
}

// The first event at or behind `ticks`; what has no time of its own belongs to the event before it.
ThreadCut::Place ThreadCut::first_at(std::uint64_t ticks, Place from) const {
  for (std::size_t i = from.block; i < blocks_.size(); ++i) {
    if (i + 1 < blocks_.size() && blocks_[i + 1].ticks < ticks) continue;
    const std::span<const Event> events = events_of(i);
    for (std::size_t k = i == from.block ? from.event : 0; k < events.size(); ++k) {
      if (events[k] == 0 || !format::event_has_time(events[k])) continue;
      if (format::event_ticks(events[k], blocks_[i].ticks) >= ticks) return {i, k};
    }
  }
  return {blocks_.size(), 0};
}

// The blocks of the segment that `end` goes on with, up to there.
std::vector<reader::StoredBlock> ThreadCut::segment_before(Place end) const {
  std::vector<reader::StoredBlock> blocks;
  if (end.block < blocks_.size() && end.event != 0) {
    blocks.push_back(blocks_[end.block]);
    blocks.back() = blocks.back().first(end.event);
  } else if (end.block == 0 || (end.block < blocks_.size() && is_boundary(end.block))) {
    return blocks;
  }
  for (std::size_t i = end.block; i != 0; --i) {
    if (i < blocks_.size() && is_boundary(i)) break;
    blocks.push_back(blocks_[i - 1]);
  }
  std::reverse(blocks.begin(), blocks.end());
  return blocks;
}

void ThreadCut::find_state() {
  const std::vector<reader::StoredBlock> blocks = segment_before(from_);
  continues_ = !blocks.empty();
  whole_ = blocks_.empty() ||
           (blocks_.front().sequence == 0 && (blocks.empty() ? from_.block == 0 : blocks.front().sequence == 0));
  const bool first = continues_ && blocks.front().sequence == blocks_.front().sequence;
  for (const reader::StoredBlock& block : blocks) {
    if (!block.may_have_stacks()) continue;
    const std::span<const Event> events = read_(block).events;
    stacks_ = stacks_ || std::any_of(events.begin(), events.end(), [](Event event) {
                return format::event_is(event, Mark::kSetPlace) || format::event_is(event, Mark::kSwitched);
              });
    if (stacks_) break;
  }
  if (stacks_ || (first && thread_.inherited != 0)) {
    state_ = reader::open_state(trace_, thread_, blocks);
  } else if (continues_) {
    const CallColumns& calls = part_.thread->calls;
    for (const std::uint32_t row : part_.rows.outer) {
      // One whose enter is lost has none here either: its exit, or the one that stands for it, tells of it.
      if ((calls.marks[row] & reader::kCallOpenBegin) == 0)
        state_.calls.push_back({calls.function[row], 0, calls.begin[row]});
    }
  }
  if (stacks_) find_aside();
  if (!continues_ && from_.block == 0) return;  // from the thread's own begin: nothing to say of it
  const auto is_first = [](const reader::OpenState::Call& call) {
    return (call.marks & reader::kCallResumed) == 0 &&
           (call.marks & (reader::kCallInherited | reader::kCallOpenBegin)) != 0;
  };
  const auto ordinary = std::find_if_not(state_.calls.begin(), state_.calls.end(), is_first);
  thread_.inherited = static_cast<std::uint32_t>(ordinary - state_.calls.begin());
  thread_.excerpt = thread_.inherited == 0 || (state_.calls.front().marks & reader::kCallInherited) == 0;
  if (thread_.inherited == 0) return;
  for (const reader::OpenState::Aside& aside : aside_)  // their calls come first
    thread_.inherited += static_cast<std::uint32_t>(aside.functions.size());
}

// What a call was given is noted before it begins, what it returned before it ends. Of calls that the range cuts both
// may lie outside: they go with the ends that are put there.
void ThreadCut::find_values(const ThreadIndex& thread) {
  const auto is_noted = [&](std::uint32_t row) {
    return !trace_.function(process_, thread.calls.function[row]).values.empty();
  };
  std::vector<std::uint32_t> cut = part_.rows.outer;
  const std::uint64_t end = part_.rows.range.end;
  if (end != std::numeric_limits<std::uint64_t>::max()) {
    const std::vector<std::uint32_t> open = rows_in(thread.calls, {end, end + 1}).outer;
    cut.insert(cut.end(), open.begin(), open.end());
  }
  if (std::none_of(cut.begin(), cut.end(), is_noted)) return;
  // An index that came from a cache has no notes.
  noted_ = thread.owned != nullptr
               ? thread.owned
               : std::make_shared<const reader::Calls>(reader::rebuild_calls(trace_, *thread.thread));
  values_.emplace(*noted_);
}

// Of a call that was open when the range began; kNoParent: it is none of the index.
std::uint32_t ThreadCut::row_of(const reader::OpenState::Call& call) const {
  const CallColumns& calls = part_.thread->calls;
  for (const std::uint32_t row : part_.rows.outer)
    if (calls.begin[row] == call.begin && calls.function[row] == call.function) return row;
  return reader::kNoParent;
}

void ThreadCut::put_values(Sink& sink, std::uint64_t ticks, const reader::Note* note) const {
  if (note == nullptr) return;
  const std::string_view bytes = noted_->bytes_of(*note);
  const std::uint32_t count = format::note_words(static_cast<std::uint32_t>(bytes.size()));
  std::vector<Event> words = {format::make_mark(ticks, Mark::kNote),
                              format::make_note_head({static_cast<format::NoteKind>(note->kind), note->name, count})};
  for (std::size_t from = 0; from < bytes.size(); from += format::kNoteBytesInWord) {
    std::uint64_t word = 0;
    const std::string_view some = bytes.substr(from, format::kNoteBytesInWord);
    for (std::size_t i = 0; i < some.size(); ++i) word |= std::uint64_t{static_cast<unsigned char>(some[i])} << (8 * i);
    words.push_back(format::make_note_word(word));
  }
  sink.put(ticks, words);
}

void ThreadCut::write(writing::TraceWriter& writer, std::vector<bool>& seen) const {
  // Number 0 says that nothing is lost before: stacks that were never seen are new, exits without an enter are those of
  // calls that were switched off. That the history is cut the thread's flag says.
  Sink sink(writer, *this, whole_ || !process_.switching.empty() ? 0 : 1, seen);
  before(sink);

  // What was found short stays out, what was not stays in, though what it had in it is not here.
  const auto keep_short = [&] {
    if (process_.min_duration_ticks != 0) sink.put(sink.last(), place_word(kNowhere, Mark::kSetPlace));
  };
  if (!state_.calls.empty()) keep_short();
  within(sink);
  if (part_.rows.range.end != std::numeric_limits<std::uint64_t>::max()) {
    keep_short();
    after(sink);
  }
  sink.flush();
}

void ThreadCut::before(Sink& sink) const {
  if (!continues_) return;
  const std::uint64_t start = state_.calls.empty() ? part_.rows.range.begin - 1 : state_.calls.front().begin;
  stacks_aside(sink, start);
  std::size_t stack = 0;
  put_places(sink, 0, start);
  for (std::size_t i = 0; i <= state_.calls.size(); ++i) {
    const std::uint64_t ticks = i < state_.calls.size() ? state_.calls[i].begin : std::max(start, sink.last());
    const bool resumed = i < state_.calls.size() && (state_.calls[i].marks & reader::kCallResumed) != 0;
    for (; stack < state_.stacks.size() && state_.stacks[stack].base == i; ++stack) {
      // Of stacks that began at the same depth the last one has the calls.
      const bool last = stack + 1 == state_.stacks.size() || state_.stacks[stack + 1].base != i;
      sink.switched(ticks, state_.stacks[stack].left_at, resumed && last ? kResumed + i : kNowhere);
    }
    if (i == state_.calls.size()) break;
    // The switch brought it back.
    const bool back = resumed && stack != 0;
    if (!back && values_) {
      const std::uint32_t row = row_of(state_.calls[i]);
      if (row != reader::kNoParent) put_values(sink, ticks, values_->arguments(row));
    }
    if (!back) sink.enter(ticks, state_.calls[i].function);
    // Those that came back with it are all there already.
    const bool more = back && i + 1 < state_.calls.size() && (state_.calls[i + 1].marks & reader::kCallResumed) != 0 &&
                      !(stack < state_.stacks.size() && state_.stacks[stack].base == i + 1);
    if (!more) put_places(sink, i + 1, ticks);
  }
}

// Stacks that the range's events go on with, and those that run and were aside before; and where jumps go to.
void ThreadCut::find_aside() {
  std::set<std::uint64_t> stacks;
  std::set<std::uint64_t> jumps;
  for (std::size_t i = from_.block; i < blocks_.size() && i <= to_.block; ++i) {
    const std::span<const Event> events = events_of(i);
    for (std::size_t k = 0; k + 1 < events.size(); ++k) {
      if (format::event_is(events[k], Mark::kJumped)) jumps.insert(format::event_place(events[k + 1]));
      if (format::event_is(events[k], Mark::kSwitched) && k + 2 < events.size())
        stacks.insert(format::event_place(events[k + 2]));
    }
  }
  for (const reader::OpenState::Aside& aside : state_.aside) {
    if (stacks.contains(aside.place)) aside_.push_back(aside);
  }
  const auto begins_stack = [&](std::size_t i) {
    return std::any_of(state_.stacks.begin(), state_.stacks.end(),
                       [i](const reader::OpenState::Stack& stack) { return stack.base == i; });
  };
  for (std::size_t i = 0; i < state_.calls.size(); ++i) {
    if (!begins_stack(i)) continue;
    reader::OpenState::Aside back{kResumed + i, {}};
    for (std::size_t k = i; k < state_.calls.size() && (state_.calls[k].marks & reader::kCallResumed) != 0; ++k) {
      if (k != i && begins_stack(k)) break;
      back.functions.push_back(state_.calls[k].function);
    }
    if (!back.functions.empty()) aside_.push_back(std::move(back));
  }
  for (const reader::OpenState::Place& place : state_.places) {
    if (!place.stands && jumps.contains(place.place)) gone_.insert(place.place);
  }
}

void ThreadCut::stacks_aside(Sink& sink, std::uint64_t ticks) const {
  for (const reader::OpenState::Aside& aside : aside_) {
    sink.switched(ticks, kHome, kNowhere);
    for (const std::uint32_t function : aside.functions) sink.enter(ticks, function);
    sink.switched(ticks, aside.place, kHome);
  }
}

// Places that were set when `depth` calls were open, before the next one.
void ThreadCut::put_places(Sink& sink, std::size_t depth, std::uint64_t ticks) const {
  for (const reader::OpenState::Place& place : state_.places) {
    if (place.depth == depth && place.stands) sink.put(ticks, place_word(place.place, Mark::kSetPlace));
  }
}

// A jump to a place whose call had ended before the range is no way out of the calls at hand. Here nobody knows the
// place, and a jump to an unknown one ends all calls: so it loses where it goes, which makes it mean nothing, too.
std::vector<Event> ThreadCut::without_jumps(std::span<const Event> events, std::set<std::uint64_t>& gone) {
  std::vector<Event> words(events.begin(), events.end());
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (format::event_is(words[k], Mark::kSetPlace)) gone.erase(format::event_place(words[k]));
    if (!format::event_is(words[k], Mark::kJumped) || k + 1 == words.size()) continue;
    if (format::event_is(words[k + 1], Mark::kPlace) && gone.contains(format::event_place(words[k + 1])))
      words[k + 1] = format::make_mark(format::event_ticks(words[k], 0), Mark::kPad);
  }
  return words;
}

void ThreadCut::within(Sink& sink) const {
  sink.flush();
  std::set<std::uint64_t> gone = gone_;
  for (std::size_t i = from_.block; i < blocks_.size() && (i < to_.block || (i == to_.block && to_.event != 0)); ++i) {
    const reader::BlockView block = read_(blocks_[i]);
    if (i != from_.block && is_boundary(i)) {
      sink.gap(block.sequence - blocks_[i - 1].next_sequence);
      gone.clear();  // behind a gap all places are unknown
    }
    const std::size_t begin = i == from_.block ? from_.event : 0;
    const std::size_t end = i == to_.block ? to_.event : block.events.size();
    if (begin == end) continue;
    const std::span<const Event> events = block.events.subspan(begin, end - begin);
    gone.empty() ? sink.copy(block.ticks, events) : sink.copy(block.ticks, without_jumps(events, gone));
  }
}

// Exits of what ran on, the innermost first.
void ThreadCut::after(Sink& sink) const {
  const CallColumns& calls = part_.thread->calls;
  std::map<std::pair<std::uint32_t, bool>, std::uint32_t> tail_exit_of;
  for (const reader::Function& function : process_.functions) {
    if (function.tail_exit && function.of != 0)
      tail_exit_of.emplace(std::pair(function.of, function.tail_return), function.id);
  }
  const std::uint64_t end = part_.rows.range.end;
  const std::vector<std::uint32_t> open = rows_in(calls, {end, end + 1}).outer;
  const auto jumped = [&](std::uint32_t row) { return reader::call_is_jumped(calls.marks[row]); };
  const auto left = [&](std::uint32_t row) {
    return (calls.marks[row] & reader::kCallSwitched) != 0 && !reader::call_is_cut(calls.marks[row]);
  };
  reader::OpenState state;  // at the range's end
  if (std::any_of(open.begin(), open.end(), [&](std::uint32_t row) { return jumped(row) || left(row); }))
    state = reader::open_state(trace_, thread_, segment_before(to_));
  std::size_t at = state.calls.size();
  // How many calls are open around a row.
  const auto depth_of = [&](std::uint32_t row) {
    for (std::size_t i = at; i != 0; --i) {
      if (state.calls[i - 1].begin == calls.begin[row] && state.calls[i - 1].function == calls.function[row])
        return at = i - 1;
    }
    return at = 0;
  };
  for (std::size_t i = open.size(); i != 0; --i) {
    const std::uint32_t row = open[i - 1];
    const std::uint64_t ticks = calls.end(row);
    const std::uint8_t marks = calls.marks[row];
    if (jumped(row) || left(row)) {
      // One mark ends all that were jumped over, or left.
      std::size_t depth = depth_of(row);
      const auto together = [&](std::uint32_t outer) {
        return calls.end(outer) == ticks && jumped(outer) == jumped(row) && left(outer) == left(row);
      };
      for (; i > 1 && together(open[i - 2]); --i) depth = depth_of(open[i - 2]);
      jumped(row) ? put_jump(sink, ticks, state, depth) : put_switch(sink, ticks, state, depth);
      continue;
    }
    if ((marks & reader::kCallOpenEnd) != 0) {
      // It is known to last until then: a jump to where it is ends nothing and has a time.
      const Event words[] = {place_word(kNowhere, Mark::kSetPlace), format::make_mark(ticks, Mark::kJumped),
                             place_word(kNowhere)};
      if (ticks > sink.last()) sink.put(ticks, words);
      continue;
    }
    std::uint32_t id = calls.function[row];
    if ((marks & reader::kCallTail) != 0) {
      const auto second = tail_exit_of.find({id, !reader::call_is_left(marks)});
      if (second != tail_exit_of.end()) id = second->second;
    }
    // One that lies in the range is there already.
    if (values_ && values_->returned(row) != nullptr && values_->returned(row)->ticks >= end)
      put_values(sink, ticks, values_->returned(row));
    const Event words[] = {format::make_mark(ticks, Mark::kUnwound), format::make_event(ticks, true, id)};
    sink.put(ticks, (marks & reader::kCallUnwound) != 0 ? std::span<const Event>(words)
                                                        : std::span<const Event>(words + 1, 1));
  }
}

// A jump that leaves `depth` calls open: any place does that was set among those.
void ThreadCut::put_jump(Sink& sink, std::uint64_t ticks, const reader::OpenState& state, std::size_t depth) {
  const auto set = std::find_if(state.places.begin(), state.places.end(),
                                [depth](const reader::OpenState::Place& p) { return p.depth == depth && p.stands; });
  const Event words[] = {format::make_mark(ticks, Mark::kJumped),
                         place_word(set != state.places.end() ? set->place : kUnset)};
  sink.put(ticks, words);
}

// A switch back to the stack under the one that the call at `depth` is on.
void ThreadCut::put_switch(Sink& sink, std::uint64_t ticks, const reader::OpenState& state, std::size_t depth) {
  const auto stack = std::find_if(state.stacks.rbegin(), state.stacks.rend(),
                                  [depth](const reader::OpenState::Stack& s) { return s.base <= depth; });
  sink.switched(ticks, kHome, stack != state.stacks.rend() ? stack->left_at : kNowhere);
}

}  // namespace karst::engine
