// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "format/event.h"
#include "format/moments.h"
#include "format/note.h"
#include "reader/held_times.h"
#include "reader/model.h"
#include "reader/partial.h"
#include "reader/rebuilder.h"
#include "reader/sending.h"
#include "reader/trace.h"

namespace karst::reader {
namespace {

using format::Event;

constexpr std::size_t kMaxDepth = std::numeric_limits<std::uint16_t>::max();

std::uint64_t span_of(std::uint64_t begin, std::uint64_t end) { return end > begin ? end - begin : 0; }

constexpr std::uint8_t marks_of(walk::Way way) {
  switch (way) {
    case walk::Way::kReturned:
      return kCallComplete;
    case walk::Way::kTailCalled:
      return kCallTail;
    case walk::Way::kUnwound:
      return kCallUnwound;
    case walk::Way::kJumped:
      return kCallJumped;
    case walk::Way::kSwitched:
      return kCallOpenEnd | kCallSwitched;
    case walk::Way::kUnseen:
      return kCallOpenEnd;
    case walk::Way::kCut:
      return kCallCut;
  }
  return kCallOpenEnd;
}

}  // namespace

Rebuilder::Rebuilder(const Process& process, EventReader read, std::size_t rows, Calls used)
    : read_(std::move(read)),
      functions_(process.functions),
      last_id_(process.last_id),
      min_duration_(process.min_duration_ticks),
      reserved_(rows),
      cursor_(process.switching) {
  switching_ = !process.switching.empty();
  known_ = process.dense_functions;
  reuses_ = used.function.capacity() != 0;
  const auto make_room = [rows](auto& column, auto& from) {
    column = std::move(from);
    column.clear();
    column.reserve(rows);  // the exact number of enters
  };
  make_room(calls_.function, used.function);
  make_room(calls_.begin, used.begin);
  make_room(calls_.duration, used.duration);
  make_room(calls_.parent, used.parent);
  make_room(calls_.depth, used.depth);
  make_room(calls_.marks, used.marks);
  calls_.taken = std::move(used.taken);
  calls_.taken.clear();
}

Rebuilder::~Rebuilder() = default;

// The columns, on the walker's fast path.
struct Rebuilder::Hot {
  void load(Rebuilder& rebuilder) {
    to = &rebuilder;
    Calls& calls = rebuilder.calls_;
    function = calls.function.data();
    begin = calls.begin.data();
    duration = calls.duration.data();
    parent = calls.parent.data();
    depth = calls.depth.data();
    marks = calls.marks.data();
    row = rebuilder.rows_;
    root = rebuilder.root_;
    root_depth = rebuilder.root_depth_;
    min_duration = rebuilder.min_duration_;
    rows = std::min(rebuilder.reserved_, kMaxRows - std::min<std::size_t>(rebuilder.open_begins_.size(), kMaxRows));
  }
  void store(Rebuilder& rebuilder) const { rebuilder.rows_ = row; }
  /// There is, unless more are to come than were counted: the file changed since.
  bool room() const { return row < rows; }
  Open enter(std::uint32_t id, std::uint64_t ticks, const Open* stack, std::size_t top) {
    function[row] = id;
    begin[row] = ticks;
    parent[row] = top == 0 ? root : stack[top - 1].serial;
    depth[row] = static_cast<std::uint16_t>(std::min(top + root_depth, kMaxDepth));
    marks[row] = kCallComplete;
    return {ticks, static_cast<std::uint32_t>(row++), id, {}};
  }
  void end(const Open* stack, std::size_t at, std::uint64_t ticks, walk::Way way) {
    const std::uint32_t ended = stack[at].serial;
    duration[ended] = span_of(stack[at].begin, ticks);
    if (duration[ended] < min_duration) [[unlikely]]
      leave_out(ended);
    if (way == walk::Way::kTailCalled) marks[ended] |= to->tail_marks_;  // if it was left out, the place is free
  }
  void leave_out(std::uint32_t ended) {
    if (ended + std::size_t{1} != row || ended < to->keep_rows_ || marks[ended] != kCallComplete) return;
    --row;
    ++to->calls_.short_calls;
  }

  Rebuilder* to;
  std::uint32_t* function;
  std::uint64_t* begin;
  std::uint64_t* duration;
  std::uint32_t* parent;
  std::uint16_t* depth;
  std::uint8_t* marks;
  std::size_t row;
  std::size_t rows;
  std::uint32_t root;
  std::size_t root_depth;
  std::uint64_t min_duration;
};

Rebuilder::OpenCount& Rebuilder::open_count(std::uint32_t id) {
  OpenCount& count = open_count_[id];
  if (switching_) {
    const std::uint64_t blinded = cursor_.blinded(id);
    if (count.blinded != blinded) count = {blinded, 0};
  }
  return count;
}

std::uint8_t Rebuilder::marks_at(walk::Way way) const {
  return way == walk::Way::kTailCalled ? tail_marks_ : marks_of(way);
}

void Rebuilder::ended(const Open* stack, std::size_t at, std::uint64_t end, walk::Way way) {
  const Open& open = stack[at];
  const std::uint64_t duration = calls_.duration[open.serial] = span_of(open.begin, end);
  const bool whole = way == walk::Way::kReturned || way == walk::Way::kTailCalled;
  if (whole && duration < min_duration_) [[unlikely]] {
    Hot columns;
    columns.load(*this);
    columns.leave_out(open.serial);
    columns.store(*this);
  }
  calls_.marks[open.serial] |= marks_at(way);
}

std::uint64_t likely_end(const Calls& calls, std::uint32_t row) {
  constexpr std::size_t kMostRows = 4096;  // that are looked at
  const auto end_of = [&](std::size_t of) { return calls.begin[of] + calls.duration[of]; };
  const std::uint32_t parent = calls.parent[row];
  for (std::size_t at = row; call_is_left(calls.marks[at]);) {
    std::size_t next = at + 1;
    while (next < calls.size() && calls.depth[next] > calls.depth[at] && next - row < kMostRows) ++next;
    if (next - row >= kMostRows) break;
    const bool is_beside = next < calls.size() && calls.parent[next] == parent;
    if (!is_beside) return std::max(end_of(at), parent != kNoParent ? end_of(parent) : calls.last_ticks);
    if (!call_is_left(calls.marks[next])) return end_of(next);
    at = next;
  }
  return end_of(row);
}

bool Rebuilder::room_for_unentered() {
  if (rows_ + open_begins_.size() < kMaxRows) return true;
  ++calls_.beyond_limit;
  return false;
}

void Rebuilder::exit_unentered(std::uint32_t id, std::uint64_t ticks, walk::Way way) {
  open_begins_.push_back({id, marks_at(way), ticks, rows_});
  if (sending_) end_unentered();
}

bool Rebuilder::make_room_for(std::size_t count) {
  if (rows_ + open_begins_.size() + count >= kMaxRows) return false;
  reserved_ += count;
  const auto make_room = [&](auto& column) {
    column.set_size(rows_);
    if (reserved_ > column.capacity()) column.reserve(reserved_ + reserved_ / 2);
  };
  make_room(calls_.function);
  make_room(calls_.begin);
  make_room(calls_.duration);
  make_room(calls_.parent);
  make_room(calls_.depth);
  make_room(calls_.marks);
  return true;
}

// Rows are in the order of their begins, so all from the first on are within the call that ended.
bool Rebuilder::move_up(std::uint32_t first, std::uint32_t ended) {
  constexpr std::size_t kMostRows = 64;
  if (rows_ - first > kMostRows) return false;
  std::uint16_t* const depth = calls_.depth.data();
  for (std::size_t row = first; row < rows_; ++row)
    if (depth[row] == 0 || depth[row] == kMaxDepth) return false;
  for (std::size_t row = first; row < rows_; ++row) --depth[row];
  std::uint32_t* const parent = calls_.parent.data();
  parent[first] = parent[ended];
  keep_rows_ = std::max(keep_rows_, rows_);
  return true;
}

std::uint32_t Rebuilder::resumed(const Open& open, const Open* stack, std::size_t top) {
  Hot columns;
  columns.load(*this);
  const Open row = columns.enter(open.function, open.begin, stack, top);
  columns.marks[row.serial] = kCallOpenBegin | kCallResumed;
  columns.store(*this);
  return row.serial;
}

void Rebuilder::segment(std::span<const StoredBlock> blocks, bool from_thread_start, std::uint32_t inherited,
                        std::uint8_t inherited_marks) {
  const std::size_t first_row = rows_;
  const bool first_segment = calls_.events == 0;
  if (sending_) begin_sending(inherited, inherited_marks);
  begin_segment(from_thread_start, inherited);
  consume_all(blocks);
  if (!started_) return;
  if (first_segment) calls_.first_ticks = first_;

  if (!first_segment && first_ < calls_.last_ticks) overlaps_ = true;
  const std::uint64_t end = latest();
  if (switching_) pass_switches(std::max(end, ended_));
  while (top_ != 0) end_top(std::max(end, ended_), walk::Way::kUnseen);
  if (sending_) {
    end_sending();
  } else {
    for (std::size_t row = first_row; row < std::min(rows_, first_row + inherited); ++row)
      calls_.marks[row] |= inherited_marks;
    if (!open_begins_.empty()) insert_open_begins(first_row);
  }
  calls_.last_ticks = std::max(calls_.last_ticks, end);
}

void Rebuilder::begin_segment(bool from_thread_start, std::uint32_t inherited) {
  start_segment(from_thread_start);
  open_begins_.clear();
  first_note_ = calls_.notes.size();
  notes_open_begins_.clear();
  keep_rows_ = rows_ + inherited;
  moved_.clear();
}

void Rebuilder::consume_all(std::span<const StoredBlock> blocks) {
  for (const StoredBlock& stored : blocks) {
    if (limits_.is_stopped()) return;
    const BlockView block = read_(stored);
    const std::size_t count = block.events.size();
    if (sending_) {
      walk_and_send(block);
    } else {
      calls_.events += count - walk_some(block.events.data(), count, block.ticks);
    }
    if (limits_.done != nullptr) limits_.done->fetch_add(count, std::memory_order_relaxed);
  }
}

// Returns how many were empty slots.
std::size_t Rebuilder::walk_some(const Event* events, std::size_t count, std::uint64_t block_ticks) {
  return switching_ ? walk<true>(events, count, block_ticks) : walk<false>(events, count, block_ticks);
}

// Calls whose begin was overwritten are known when they end, innermost first; as rows they come
// first, outermost first. So the segment's rows move down by their number.
void Rebuilder::insert_open_begins(std::size_t first_row) {
  const std::size_t added = open_begins_.size();
  const std::size_t total = rows_ + added;
  reserved_ += added;
  const auto move_down = [&](auto& column) {
    column.set_size(rows_);
    if (reserved_ > column.capacity()) column.reserve(reserved_ + reserved_ / 2);
    column.set_size(total);
    std::copy_backward(column.begin() + first_row, column.begin() + rows_, column.end());
  };
  move_down(calls_.function);
  move_down(calls_.begin);
  move_down(calls_.duration);
  move_down(calls_.parent);
  move_down(calls_.depth);
  move_down(calls_.marks);

  // The call at open_begins_[i] is row first_row + added - 1 - i.
  const auto row_of = [&](std::size_t i) { return static_cast<std::uint32_t>(first_row + added - 1 - i); };
  for (std::size_t i = 0; i < added; ++i) {
    const std::uint32_t row = row_of(i);
    calls_.function[row] = open_begins_[i].function;
    calls_.begin[row] = first_;
    calls_.duration[row] = span_of(first_, open_begins_[i].end);
    calls_.parent[row] = i + 1 < added ? row_of(i + 1) : kNoParent;
    calls_.depth[row] = static_cast<std::uint16_t>(std::min(added - 1 - i, kMaxDepth));
    calls_.marks[row] = static_cast<std::uint8_t>(kCallOpenBegin | open_begins_[i].marks);
  }
  std::size_t next = 0;  // the first open begin whose exit comes after the row at hand
  for (std::size_t row = first_row + added; row < total; ++row) {
    while (next < added && open_begins_[next].before_row + added <= row) ++next;
    std::uint32_t& parent = calls_.parent[row];
    if (parent != kNoParent) {
      parent += static_cast<std::uint32_t>(added);
    } else if (next < added) {
      parent = row_of(next);
    }
    calls_.depth[row] = static_cast<std::uint16_t>(std::min(calls_.depth[row] + (added - next), kMaxDepth));
  }
  for (std::size_t i = first_note_; i < calls_.notes.size(); ++i) {
    std::uint32_t& row = calls_.notes[i].row;
    const std::size_t ended_before = notes_open_begins_[i - first_note_];
    if (row != kNoParent)
      row += static_cast<std::uint32_t>(added);
    else if (ended_before < added)
      row = row_of(ended_before);
  }
  rows_ = total;
}

void Rebuilder::noted(const format::NoteHead& head, const Event* words, std::uint64_t ticks) {
  Note note{ticks,     top_ == 0 ? root_ : memory_.stack()[top_ - 1].serial,
            head.name, static_cast<std::uint32_t>(head.kind),
            0,         calls_.note_bytes.size()};
  for (std::uint32_t i = 0; i < head.words; ++i) {
    const std::uint64_t payload = format::note_payload(__atomic_load_n(&words[i], __ATOMIC_RELAXED));
    for (std::uint32_t b = 0; b < format::kNoteBytesInWord; ++b)
      calls_.note_bytes.push_back(static_cast<char>(payload >> (8 * b) & 0xff));
  }
  // The last word is filled up with zeros; numbers leave theirs out as well.
  while (calls_.note_bytes.size() > note.bytes && calls_.note_bytes.back() == '\0') calls_.note_bytes.pop_back();
  note.size = static_cast<std::uint32_t>(calls_.note_bytes.size() - note.bytes);
  calls_.notes.push_back(note);
  if (!sending_) notes_open_begins_.push_back(static_cast<std::uint32_t>(open_begins_.size()));
}

void Rebuilder::bound_ids() {
  if (calls_.unknown_ids != 0)
    for (std::uint32_t& id : calls_.function) id = std::min(id, last_id_);
  for (Note& note : calls_.notes) note.name = std::min(note.name, last_id_);
}

void Rebuilder::count_oddities() {
  calls_.out_of_order = oddities().out_of_order;
  calls_.unmatched_exits = oddities().unmatched_exits;
  calls_.missing_exits = oddities().missing_exits;
  calls_.strange_jumps = oddities().strange_jumps;
}

Calls Rebuilder::finish() {
  const auto settle = [this](auto& column) {
    column.set_size(rows_);
    if (!reuses_) column.shrink_to_fit();
  };
  settle(calls_.function);
  settle(calls_.begin);
  settle(calls_.duration);
  settle(calls_.parent);
  settle(calls_.depth);
  settle(calls_.marks);
  count_oddities();
  if (calls_.unknown_ids != 0 || !calls_.notes.empty()) bound_ids();
  // Else rows have the times of events that are in order. Switches have times of their own.
  if (calls_.out_of_order != 0 || overlaps_ || switching_) hold_times(calls_);
  return std::move(calls_);
}

namespace {

std::size_t count_enters(std::span<const StoredBlock> blocks) {
  std::size_t enters = 0;
  for (const StoredBlock& block : blocks) enters += block.enters();
  return enters;
}

std::uint8_t marks_of_inherited(const Thread& thread) { return thread.excerpt ? kCallOpenBegin : kCallInherited; }

bool is_whole(std::span<const StoredBlock> blocks) { return blocks.front().sequence == 0; }

}  // namespace

OpenState Rebuilder::open_behind(std::span<const StoredBlock> blocks, bool from_thread_start, std::uint32_t inherited,
                                 std::uint8_t inherited_marks) {
  begin_segment(from_thread_start, inherited);
  consume_all(blocks);
  const auto call_of = [&](std::uint32_t row) {
    const auto known = static_cast<std::uint8_t>(calls_.marks[row] & (kCallOpenBegin | kCallResumed));
    return OpenState::Call{calls_.function[row],
                           static_cast<std::uint8_t>(known | (row < inherited ? inherited_marks : 0)),
                           calls_.begin[row]};
  };
  OpenState state;
  for (std::size_t i = 0; i < top_; ++i) state.calls.push_back(call_of(memory_.stack()[i].serial));
  for (std::size_t i = 0; i < memory_.below_count(); ++i)
    state.stacks.push_back({memory_.below(i).left_at, memory_.below(i).base});
  for (const auto& [place, set] : memory_.places()) {
    const walk::Place at = switching_ ? standing(set) : set;
    OpenState::Place known{place, at.depth, true, {}, 0};
    known.stands = at.depth == 0 || (at.depth <= top_ && memory_.stack()[at.depth - 1].serial == at.serial);
    if (at.depth != 0) known.call = call_of(at.serial);
    if (!known.stands) known.end = known.call.begin + calls_.duration[at.serial];
    state.places.push_back(known);
  }
  std::sort(state.places.begin(), state.places.end(),
            [](const auto& a, const auto& b) { return a.depth != b.depth ? a.depth < b.depth : a.place < b.place; });
  for (const auto& [place, aside] : memory_.aside()) {
    state.aside.push_back({place, {}});
    for (const auto& call : aside.calls) state.aside.back().functions.push_back(call.function);
  }
  std::sort(state.aside.begin(), state.aside.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  return state;
}

OpenState open_state(const Trace& trace, const Thread& thread, std::span<const StoredBlock> blocks) {
  if (blocks.empty()) return {};
  Rebuilder rebuilder(trace.processes()[thread.process], trace.event_reader(),
                      std::min<std::size_t>(count_enters(blocks), kMaxRows));
  const bool first = blocks.front().sequence == trace.blocks(thread).front().sequence;
  return rebuilder.open_behind(blocks, first && is_whole(blocks), first ? thread.inherited : 0,
                               marks_of_inherited(thread));
}

Calls rebuild_calls(const Trace& trace, const Thread& thread) {
  return rebuild_calls(trace, thread, RebuildLimits(), {});
}

Calls rebuild_calls(const Trace& trace, const Thread& thread, Calls used) {
  return rebuild_calls(trace, thread, RebuildLimits(), std::move(used));
}

namespace {

/// When all that `thread` was still inside at its end had been so until then; 0: not known.
std::uint64_t end_of_thread(const Process& process, const Thread& thread) {
  if (thread.exited_ticks != 0) return thread.exited_ticks;
  if (process.end_ticks != 0) return process.end_ticks;
  // A snapshot has all that was until it was taken, a crash all that was before it.
  const auto& moments = process.moments;
  const auto is = [](const Moment& m, format::MomentKind kind) { return m.kind == static_cast<std::uint32_t>(kind); };
  if (moments.size() == 1 && is(moments[0], format::MomentKind::kSnapshot)) return moments[0].kept_to;
  const auto crash =
      std::find_if(moments.begin(), moments.end(), [&](const Moment& m) { return is(m, format::MomentKind::kCrash); });
  return crash != moments.end() ? crash->kept_to : 0;
}

/// The first block behind `from` that does not follow the one before it.
std::size_t end_of_segment(std::span<const StoredBlock> blocks, std::size_t from) {
  std::size_t end = from + 1;
  while (end < blocks.size() && blocks[end].sequence == blocks[end - 1].next_sequence) ++end;
  return end;
}

/// Has `rebuilder` walk over the first `count` of the thread's blocks. Returns how many are missing between them.
std::uint64_t walk_segments(const Trace& trace, const Thread& thread, std::size_t count, Rebuilder& rebuilder) {
  const auto all = trace.blocks(thread);
  const auto blocks = all.first(count);
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < blocks.size();) {
    const std::size_t end = end_of_segment(blocks, i);
    if (end == all.size()) rebuilder.ended(end_of_thread(trace.processes()[thread.process], thread));
    rebuilder.segment(blocks.subspan(i, end - i), i == 0 && is_whole(blocks), i == 0 ? thread.inherited : 0,
                      marks_of_inherited(thread));
    if (end < blocks.size()) missing += blocks[end].sequence - blocks[end - 1].next_sequence;
    i = end;
  }
  return missing;
}

}  // namespace

Calls rebuild_calls(const Trace& trace, const Thread& thread, const RebuildLimits& limits, Calls used) {
  const auto all = trace.blocks(thread);
  const auto blocks = all.first(std::min(limits.blocks, all.size()));
  if (blocks.empty()) return {};
  Rebuilder rebuilder(trace.processes()[thread.process], trace.event_reader(),
                      std::min<std::size_t>(count_enters(blocks), kMaxRows), std::move(used));
  rebuilder.limit(limits);
  const std::uint64_t missing = walk_segments(trace, thread, blocks.size(), rebuilder);
  Calls calls = rebuilder.finish();
  calls.missing_blocks = missing;
  return calls;
}

Calls each_piece(const Trace& trace, const Thread& thread, const PieceOptions& options, const PieceUse& use,
                 Calls used) {
  const auto blocks = trace.blocks(thread);
  const Process& process = trace.processes()[thread.process];
  const bool has_gaps = !blocks.empty() && end_of_segment(blocks, 0) != blocks.size();
  std::vector<Rebuilder::SegmentBegin> begins;
  if (options.is_tree && !blocks.empty()) {
    Rebuilder first(process, trace.event_reader(), 0, std::move(used));
    first.send_pieces({}, options.rows, has_gaps);
    walk_segments(trace, thread, blocks.size(), first);
    begins = first.begins();
    used = first.finish_pieces(0);
  }
  Rebuilder rebuilder(process, trace.event_reader(), 0, std::move(used));
  RebuildLimits limits;
  limits.done = options.done;
  rebuilder.limit(limits);
  rebuilder.send_pieces(use, options.rows, has_gaps);
  if (options.is_tree) rebuilder.know_begins(std::move(begins));
  return rebuilder.finish_pieces(walk_segments(trace, thread, blocks.size(), rebuilder));
}

}  // namespace karst::reader
