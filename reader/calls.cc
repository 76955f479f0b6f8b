// Rebuilds calls from events. A thread's kept history is a list of segments, each without a gap in
// the block sequence; each is rebuilt alone, for a call's two ends can only meet within one:
//
//   kept blocks      [ 7 8 9 ]       [ 12 13 ]
//   calls        ...==          ==............       (open begin)  (open end)
//                    ==    ==       ==    ==
//
// Rules, in the order of their need:
// - An enter is a row. An exit of the innermost open call ends it.
// - An exit of an outer open call: the calls within it ended without being seen to (an exception, a
//   longjmp, a lost exit). They are marked open, their last sure moment is the event before.
// - An exit while nothing is open: the enter lies before the segment. The call starts at the
//   segment's first event, marked open, and becomes the parent of all that had none so far.
// - An exit of something that is not open while other calls are: it cannot be; counted, left out.
// - What is open when the segment ends is marked open, its last sure moment is the last event.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/event.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::reader {
namespace {

using format::Event;

constexpr std::size_t kMaxDepth = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t kScanFreely = 64;  // stack entries that may be searched in vain at no notable cost

std::uint64_t span_of(std::uint64_t begin, std::uint64_t end) { return end > begin ? end - begin : 0; }

class Rebuilder {
 public:
  Rebuilder(const Process& process, std::size_t rows) : functions_(process.functions), reserved_(rows) {
    known_ = process.dense_functions;
    // The exact number of enters; untouched pages cost nothing.
    calls_.function.reserve(rows);
    calls_.begin.reserve(rows);
    calls_.duration.reserve(rows);
    calls_.parent.reserve(rows);
    calls_.depth.reserve(rows);
    calls_.marks.reserve(rows);
  }

  void segment(std::span<const BlockView> blocks, bool from_thread_start);
  Calls finish();

 private:
  struct Open {
    std::uint64_t begin;
    std::uint32_t row;
    std::uint32_t function;
  };
  struct OpenBegin {
    std::uint32_t function;
    std::uint64_t end;
    std::size_t before_row;  // its exit came before this row was begun
  };

  void consume(const BlockView& block);
  void exit_elsewhere(std::uint32_t id, std::uint64_t ticks, std::uint64_t last_inside);
  void close_open(std::uint64_t last_inside);
  void insert_open_begins(std::size_t first_row);
  bool table_has(std::uint32_t id) const { return id < functions_.size() && functions_[id].id != 0; }

  std::span<const Function> functions_;
  std::uint32_t known_ = 0;  // ids 1 to known_ need no look into the table
  Calls calls_;
  std::size_t rows_ = 0;
  std::size_t reserved_;  // all enters of the thread and the open begins inserted so far: room for every row to come

  Column<Open> stack_;
  std::size_t top_ = 0;  // entries of stack_ in use; its own size is not kept up to date
  std::vector<OpenBegin> open_begins_;
  bool started_ = false;       // the segment has seen an event
  std::uint64_t first_ = 0;    // its first event's time
  std::uint64_t last_ = 0;     // the last event's time
  std::uint64_t highest_ = 0;  // the latest time before the clock went back
  bool from_thread_start_ = false;

  // How often each function is on the stack. Kept only once a deep stack was searched in vain, so
  // that impossible exits cannot make the work quadratic.
  bool counting_ = false;
  std::unordered_map<std::uint32_t, std::uint32_t> open_count_;
};

void Rebuilder::consume(const BlockView& block) {
  const std::uint64_t epoch = block.ticks & ~format::kEventTickMask;
  std::uint32_t* const function = calls_.function.data();
  std::uint64_t* const begin = calls_.begin.data();
  std::uint64_t* const duration = calls_.duration.data();
  std::uint32_t* const parent = calls_.parent.data();
  std::uint16_t* const depth = calls_.depth.data();
  std::uint8_t* const marks = calls_.marks.data();
  std::size_t row = rows_;
  std::size_t top = top_;
  std::uint64_t last = last_;
  Open* stack = stack_.data();
  std::uint64_t holes = 0;
  std::uint64_t unknown = 0;
  std::uint64_t beyond = 0;

  for (const Event event : block.events) {
    if (event == 0) [[unlikely]] {
      ++holes;
      continue;
    }
    const std::uint64_t ticks = epoch | (event >> KARST_EVENT_TICK_SHIFT);
    const std::uint32_t id = format::event_function(event);
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
    // Id 0 wraps around and is looked up as well.
    if (id - 1 >= known_ && !table_has(id)) [[unlikely]]
      ++unknown;

    if (!format::event_is_exit(event)) {
      if (row + open_begins_.size() >= kMaxRows) [[unlikely]] {
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
        ++open_count_[id];
    } else if (top != 0 && stack[top - 1].function == id) {
      --top;
      duration[stack[top].row] = span_of(stack[top].begin, ticks);
      if (counting_) [[unlikely]]
        --open_count_[id];
    } else {
      top_ = top;
      rows_ = row;
      exit_elsewhere(id, ticks, before);
      top = top_;
    }
  }
  rows_ = row;
  top_ = top;
  last_ = last;
  calls_.events += block.events.size() - holes;
  calls_.unknown_ids += unknown;
  calls_.beyond_limit += beyond;
}

void Rebuilder::exit_elsewhere(std::uint32_t id, std::uint64_t ticks, std::uint64_t last_inside) {
  if (top_ == 0) {
    if (rows_ + open_begins_.size() >= kMaxRows) {
      ++calls_.beyond_limit;
      return;
    }
    open_begins_.push_back({id, ticks, rows_});
    // Nothing was overwritten before a thread's first block: tracing came on late, or the event is wrong.
    if (from_thread_start_) ++calls_.unmatched_exits;
    return;
  }
  std::size_t at = top_;
  if (counting_) {
    const auto count = open_count_.find(id);
    if (count == open_count_.end() || count->second == 0) at = 0;
  }
  while (at != 0 && stack_[at - 1].function != id) --at;
  if (at == 0) {
    ++calls_.unmatched_exits;
    if (!counting_ && top_ > kScanFreely) {
      counting_ = true;
      for (std::size_t i = 0; i < top_; ++i) ++open_count_[stack_[i].function];
    }
    return;
  }
  for (; top_ > at; --top_) {
    close_open(last_inside);
    ++calls_.missing_exits;
  }
  --top_;
  calls_.duration[stack_[top_].row] = span_of(stack_[top_].begin, ticks);
  if (counting_) --open_count_[id];
}

// Marks the innermost open call as one whose end is not known.
void Rebuilder::close_open(std::uint64_t last_inside) {
  const Open& open = stack_[top_ - 1];
  calls_.duration[open.row] = span_of(open.begin, last_inside);
  calls_.marks[open.row] |= kCallOpenEnd;
  if (counting_) --open_count_[open.function];
}

void Rebuilder::segment(std::span<const BlockView> blocks, bool from_thread_start) {
  const std::size_t first_row = rows_;
  const bool first_segment = calls_.events == 0;
  started_ = false;
  from_thread_start_ = from_thread_start;
  open_begins_.clear();
  counting_ = false;
  open_count_.clear();
  for (const BlockView& block : blocks) consume(block);
  if (!started_) return;

  const std::uint64_t end = std::max(last_, highest_);
  for (; top_ != 0; --top_) close_open(end);
  if (!open_begins_.empty()) insert_open_begins(first_row);
  if (first_segment) calls_.first_ticks = first_;
  calls_.last_ticks = std::max(calls_.last_ticks, end);
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
    calls_.marks[row] = kCallOpenBegin;
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

std::size_t count_enters(std::span<const BlockView> blocks) {
  std::uint64_t exits = 0;
  std::uint64_t all = 0;
  for (const BlockView& block : blocks) {
    for (const Event event : block.events) exits += (event / KARST_EVENT_EXIT_BIT) & 1;
    all += block.events.size();
  }
  return all - exits;
}

}  // namespace

Calls rebuild_calls(const Trace& trace, const Thread& thread) {
  const auto blocks = trace.blocks(thread);
  if (blocks.empty()) return {};
  Rebuilder rebuilder(trace.processes()[thread.process], std::min<std::size_t>(count_enters(blocks), kMaxRows));
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t end = i + 1;
    while (end < blocks.size() && blocks[end].sequence == blocks[end - 1].sequence + 1) ++end;
    rebuilder.segment(blocks.subspan(i, end - i), i == 0 && blocks[0].sequence == 0);
    if (end < blocks.size()) missing += blocks[end].sequence - blocks[end - 1].sequence - 1;
    i = end;
  }
  Calls calls = rebuilder.finish();
  calls.missing_blocks = missing;
  return calls;
}

}  // namespace karst::reader
