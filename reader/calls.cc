#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "format/event.h"
#include "format/moments.h"
#include "reader/model.h"
#include "reader/partial.h"
#include "reader/rebuilder.h"
#include "reader/trace.h"

namespace karst::reader {
namespace {

using format::Event;

constexpr std::size_t kMaxDepth = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t kScanFreely = 64;  // stack entries that may be searched in vain at no notable cost

std::uint64_t span_of(std::uint64_t begin, std::uint64_t end) { return end > begin ? end - begin : 0; }

}  // namespace

Rebuilder::Rebuilder(const Process& process, std::size_t rows)
    : functions_(process.functions),
      min_duration_(process.min_duration_ticks),
      reserved_(rows),
      switching_(!process.switching.empty()),
      cursor_(process.switching) {
  known_ = process.dense_functions;
  // The exact number of enters; untouched pages cost nothing.
  calls_.function.reserve(rows);
  calls_.begin.reserve(rows);
  calls_.duration.reserve(rows);
  calls_.parent.reserve(rows);
  calls_.depth.reserve(rows);
  calls_.marks.reserve(rows);
}

// Twice: a process without switches does not pay for them.
template <bool kSwitching>
void Rebuilder::consume(const BlockView& block) {
  const std::uint64_t epoch = block.ticks & ~format::kEventTickMask;
  std::uint32_t* function = nullptr;
  std::uint64_t* begin = nullptr;
  std::uint64_t* duration = nullptr;
  std::uint32_t* parent = nullptr;
  std::uint16_t* depth = nullptr;
  std::uint8_t* marks = nullptr;
  Open* stack = nullptr;
  std::size_t row = 0;
  std::size_t top = 0;
  std::size_t base = 0;
  std::size_t room = 0;
  std::uint64_t last = 0;
  std::uint64_t holes = 0;
  std::uint64_t unknown = 0;
  std::uint64_t beyond = 0;
  std::uint64_t ignored = 0;
  const std::uint64_t min_duration = min_duration_;
  const auto leave_out = [&](std::uint32_t ended) {
    if (ended + std::size_t{1} != row || ended < keep_rows_ || marks[ended] != kCallComplete) return;
    --row;
    ++calls_.short_calls;
  };
  // What the loop works on is kept out of memory; the rare ways go through the members.
  const auto load = [&] {
    function = calls_.function.data();
    begin = calls_.begin.data();
    duration = calls_.duration.data();
    parent = calls_.parent.data();
    depth = calls_.depth.data();
    marks = calls_.marks.data();
    stack = stack_.data();
    row = rows_;
    top = top_;
    base = base_;
    last = last_;
    room = std::min(reserved_, kMaxRows - std::min<std::size_t>(open_begins_.size(), kMaxRows));
  };
  const auto store = [&] {
    rows_ = row;
    top_ = top;
    last_ = last;
  };
  load();

  for (std::size_t at = 0; at < block.events.size(); ++at) {
    // The file may change: one look at each, that compilers may not repeat.
    const Event event = __atomic_load_n(&block.events[at], __ATOMIC_RELAXED);
    if (event == 0) [[unlikely]] {
      ++holes;
      continue;
    }
    std::uint32_t id = format::event_function(event);
    // Id 0 wraps around and is looked up as well.
    if (id - 1 >= known_) [[unlikely]] {
      if (format::event_is_mark(event) && format::event_is_exit(event)) {
        store();
        at += read_mark(block.events.subspan(at), epoch);
        load();
        continue;
      }
      if (!table_has(id)) ++unknown;
    }
    const std::uint64_t ticks = epoch | (event >> KARST_EVENT_TICK_SHIFT);
    if constexpr (kSwitching) {
      if (ticks >= cursor_.next()) [[unlikely]] {
        store();
        pass_switches(ticks);
        load();
      }
      if (is_blind(id)) {
        ++ignored;
        continue;
      }
    }
    if (!started_) [[unlikely]] {
      started_ = true;
      first_ = last = highest_ = ticks;
    }
    const std::uint64_t before = last;
    if (ticks < before) [[unlikely]] {
      ++calls_.out_of_order;
      highest_ = std::max(highest_, before);
    }
    last = ticks;

    if (!format::event_is_exit(event)) {
      // More than were counted: the file changed since.
      if (row >= room) [[unlikely]] {
        ++beyond;
        continue;
      }
      if (top == stack_.capacity()) [[unlikely]] {
        stack_.reserve(std::max<std::size_t>(256, top * 2));
        stack = stack_.data();
      }
      function[row] = id;
      begin[row] = ticks;
      parent[row] = top == 0 ? kNoParent : stack[top - 1].row;
      depth[row] = static_cast<std::uint16_t>(std::min(top, kMaxDepth));
      marks[row] = kCallComplete;
      stack[top++] = {ticks, static_cast<std::uint32_t>(row), id};
      ++row;
      if (counting_) [[unlikely]]
        ++count_of(id).calls;
    } else if (top != base && stack[top - 1].function == id) {
      --top;
      duration[stack[top].row] = span_of(stack[top].begin, ticks);
      if (counting_) [[unlikely]]
        --count_of(id).calls;
      if (duration[stack[top].row] < min_duration) [[unlikely]]
        leave_out(stack[top].row);
      if constexpr (kSwitching) {
        if (top <= old_) [[unlikely]] {
          store();
          end_cut(ticks);
          load();
        }
      }
    } else {
      std::uint8_t how = kCallComplete;
      if (id < functions_.size() && functions_[id].tail_exit) {
        how = kCallTail;
        id = functions_[id].of;
      }
      if (how == kCallTail && top != base && stack[top - 1].function == id && !counting_) [[likely]] {
        --top;
        duration[stack[top].row] = span_of(stack[top].begin, ticks);
        if (duration[stack[top].row] < min_duration) [[unlikely]]
          leave_out(stack[top].row);
        marks[stack[top].row] = kCallTail;  // if it was left out, the place is free
        if constexpr (kSwitching) {
          if (top <= old_) [[unlikely]] {
            store();
            end_cut(ticks);
            load();
          }
        }
        continue;
      }
      store();
      exit_elsewhere(id, ticks, before, how);
      load();
    }
  }
  store();
  calls_.events += block.events.size() - holes;
  calls_.unknown_ids += unknown;
  calls_.beyond_limit += beyond;
  calls_.ignored += ignored;
}

Rebuilder::OpenCount& Rebuilder::count_of(std::uint32_t id) {
  OpenCount& count = open_count_[id];
  if (switching_) {
    const std::uint64_t blinded = cursor_.blinded(id);
    if (count.blinded != blinded) count = {blinded, 0};
  }
  return count;
}

// Ends the innermost open call.
void Rebuilder::end_top(std::uint64_t end, std::uint8_t marks) {
  const Open& open = stack_[--top_];
  calls_.duration[open.row] = span_of(open.begin, end);
  if (top_ < old_ && is_cut(open)) {
    calls_.marks[open.row] |= kCallCut;
    return;
  }
  calls_.marks[open.row] |= marks;
  if (counting_) --count_of(open.function).calls;
}

void Rebuilder::exit_elsewhere(std::uint32_t id, std::uint64_t ticks, std::uint64_t last_inside, std::uint8_t marks) {
  // A stack that has no call open and sees one of the stack before it end has come to its own end unseen.
  while (top_ == base_ && !below_.empty()) {
    below_.pop_back();
    base_ = below_.empty() ? 0 : below_.back().base;
    if (switching_) end_cut(last_inside);
  }
  if (top_ == 0) {
    if (switching_ && began_unseen(id)) return;
    if (out_of_rows()) {
      ++calls_.beyond_limit;
      return;
    }
    if (lost_stacks_) {
      ++calls_.unmatched_exits;  // of the stack at hand or of another: whose caller it was is not known
      return;
    }
    open_begins_.push_back({id, marks, ticks, rows_});
    // Nothing was overwritten before a thread's first block: tracing came on late, or the event is wrong.
    if (from_thread_start_) ++calls_.unmatched_exits;
    return;
  }
  std::size_t at = top_;
  if (counting_) {
    const auto count = open_count_.find(id);
    if (count == open_count_.end() || count_of(id).calls == 0) at = base_;
  }
  while (at != base_ && (stack_[at - 1].function != id || (at <= old_ && is_cut(stack_[at - 1])))) --at;
  if (at == base_) {
    if (!switching_ || !began_unseen(id)) ++calls_.unmatched_exits;
    if (!counting_ && top_ > kScanFreely) {
      counting_ = true;
      for (std::size_t i = 0; i < top_; ++i)
        if (i >= old_ || !is_cut(stack_[i])) ++count_of(stack_[i].function).calls;
    }
    return;
  }
  while (top_ > at) {
    end_top(last_inside, kCallOpenEnd);
    ++calls_.missing_exits;
  }
  end_top(ticks, marks);
  if (switching_) end_cut(ticks);
}

void Rebuilder::segment(std::span<const BlockView> blocks, bool from_thread_start, std::uint32_t inherited,
                        std::uint8_t inherited_marks) {
  const std::size_t first_row = rows_;
  const bool first_segment = calls_.events == 0;
  start_segment(from_thread_start, inherited);
  consume_all(blocks);
  if (!started_) return;

  const std::uint64_t end = std::max(last_, highest_);
  if (switching_) pass_switches(std::max(end, ended_));
  while (top_ != 0) end_top(std::max(end, ended_), kCallOpenEnd);
  for (std::size_t row = first_row; row < std::min(rows_, first_row + inherited); ++row)
    calls_.marks[row] |= inherited_marks;
  if (!open_begins_.empty()) insert_open_begins(first_row);
  if (first_segment) calls_.first_ticks = first_;
  calls_.last_ticks = std::max(calls_.last_ticks, end);
}

void Rebuilder::start_segment(bool from_thread_start, std::uint32_t inherited) {
  started_ = false;
  from_thread_start_ = from_thread_start;
  knows_stacks_ = from_thread_start;
  lost_stacks_ = false;
  open_begins_.clear();
  places_.clear();
  below_.clear();
  base_ = 0;
  aside_.clear();
  counting_ = false;
  open_count_.clear();
  keep_rows_ = rows_ + inherited;
  old_ = 0;
  moved_.clear();
}

void Rebuilder::consume_all(std::span<const BlockView> blocks) {
  for (const BlockView& block : blocks) {
    if (limits_.is_stopped()) return;
    switching_ ? consume<true>(block) : consume<false>(block);
    if (limits_.done != nullptr) limits_.done->fetch_add(block.events.size(), std::memory_order_relaxed);
  }
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
  rows_ = total;
}

Calls Rebuilder::finish() {
  const auto settle = [this](auto& column) {
    column.set_size(rows_);
    column.shrink_to_fit();
  };
  settle(calls_.function);
  settle(calls_.begin);
  settle(calls_.duration);
  settle(calls_.parent);
  settle(calls_.depth);
  settle(calls_.marks);
  return std::move(calls_);
}

namespace {

std::size_t count_enters(std::span<const BlockView> blocks) {
  std::uint64_t exits = 0;
  std::uint64_t all = 0;
  for (const BlockView& block : blocks) {
    for (const Event event : block.events) exits += (event / KARST_EVENT_EXIT_BIT) & 1;
    all += block.events.size();
  }
  return all - exits;
}

std::uint8_t marks_of_inherited(const Thread& thread) { return thread.excerpt ? kCallOpenBegin : kCallInherited; }

bool is_whole(std::span<const BlockView> blocks) { return blocks.front().sequence == 0; }

}  // namespace

OpenState Rebuilder::open_behind(std::span<const BlockView> blocks, bool from_thread_start, std::uint32_t inherited,
                                 std::uint8_t inherited_marks) {
  start_segment(from_thread_start, inherited);
  consume_all(blocks);
  const auto call_of = [&](std::uint32_t row) {
    const auto known = static_cast<std::uint8_t>(calls_.marks[row] & (kCallOpenBegin | kCallResumed));
    return OpenState::Call{calls_.function[row],
                           static_cast<std::uint8_t>(known | (row < inherited ? inherited_marks : 0)),
                           calls_.begin[row]};
  };
  OpenState state;
  for (std::size_t i = 0; i < top_; ++i) state.calls.push_back(call_of(stack_[i].row));
  for (const Below& below : below_) state.stacks.push_back({below.left_at, below.base});
  for (const auto& [place, set] : places_) {
    const Place at = switching_ ? standing(set) : set;
    OpenState::Place known{place, at.depth, true, {}, 0};
    known.stands = at.depth == 0 || (at.depth <= top_ && stack_[at.depth - 1].row == at.row);
    if (at.depth != 0) known.call = call_of(at.row);
    if (!known.stands) known.end = known.call.begin + calls_.duration[at.row];
    state.places.push_back(known);
  }
  std::sort(state.places.begin(), state.places.end(),
            [](const auto& a, const auto& b) { return a.depth != b.depth ? a.depth < b.depth : a.place < b.place; });
  for (const auto& [place, aside] : aside_) state.aside.push_back({place, aside.functions});
  std::sort(state.aside.begin(), state.aside.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  return state;
}

OpenState open_state(const Trace& trace, const Thread& thread, std::span<const BlockView> blocks) {
  if (blocks.empty()) return {};
  Rebuilder rebuilder(trace.processes()[thread.process], std::min<std::size_t>(count_enters(blocks), kMaxRows));
  const bool first = blocks.front().sequence == trace.blocks(thread).front().sequence;
  return rebuilder.open_behind(blocks, first && is_whole(blocks), first ? thread.inherited : 0,
                               marks_of_inherited(thread));
}

Calls rebuild_calls(const Trace& trace, const Thread& thread) { return rebuild_calls(trace, thread, {}); }

Calls rebuild_calls(const Trace& trace, const Thread& thread, const RebuildLimits& limits) {
  const auto all = trace.blocks(thread);
  const auto blocks = all.first(std::min(limits.blocks, all.size()));
  if (blocks.empty()) return {};
  const Process& process = trace.processes()[thread.process];
  Rebuilder rebuilder(process, std::min<std::size_t>(count_enters(blocks), kMaxRows));
  rebuilder.limit(limits);
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t end = i + 1;
    while (end < blocks.size() && blocks[end].sequence == blocks[end - 1].sequence + 1) ++end;
    if (end == all.size()) {
      // A snapshot has all that was until it was taken.
      const auto& moments = process.moments;
      const bool snapshot =
          moments.size() == 1 && moments[0].kind == static_cast<std::uint32_t>(format::MomentKind::kSnapshot);
      rebuilder.ended(thread.exited_ticks != 0 ? thread.exited_ticks
                      : process.end_ticks != 0 ? process.end_ticks
                      : snapshot               ? moments[0].kept_to
                                               : 0);
    }
    rebuilder.segment(blocks.subspan(i, end - i), i == 0 && is_whole(blocks), i == 0 ? thread.inherited : 0,
                      marks_of_inherited(thread));
    if (end < blocks.size()) missing += blocks[end].sequence - blocks[end - 1].sequence - 1;
    i = end;
  }
  Calls calls = rebuilder.finish();
  calls.missing_blocks = missing;
  return calls;
}

}  // namespace karst::reader
