#include "view/cut.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "collect/trace_writer.h"

namespace karst::view {
namespace {

using format::Event;
using format::Mark;

constexpr std::size_t kBlockEvents = 8189;

// Writes one thread's events in blocks: a block's events share the upper bits of the clock.
class BlockSink {
 public:
  BlockSink(collect::TraceWriter& writer, std::uint32_t process, std::uint32_t thread)
      : writer_(writer), process_(process), thread_(thread) {}

  /// A word and the words that belong to it, at a time.
  void put(std::uint64_t ticks, std::span<const Event> words) {
    const std::uint64_t epoch = ticks & ~format::kEventTickMask;
    if (!events_.empty() &&
        (epoch != (ticks_ & ~format::kEventTickMask) || events_.size() + words.size() > kBlockEvents))
      flush();
    if (events_.empty()) ticks_ = ticks;
    events_.insert(events_.end(), words.begin(), words.end());
  }
  void put(std::uint64_t ticks, Event word) { put(ticks, std::span(&word, 1)); }
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

 private:
  collect::TraceWriter& writer_;
  std::uint32_t process_;
  std::uint32_t thread_;
  std::vector<Event> events_;
  std::uint64_t ticks_ = 0;
  std::uint64_t sequence_ = 1;  // 0 would say that the thread's history begins here
};

// The word at `at` of a block with those that belong to it, and when it happened.
struct Group {
  std::span<const Event> words;
  std::uint64_t ticks = 0;
  bool set_place = false;
  bool empty = false;  // nothing happened
};

Group group_at(const reader::BlockView& block, std::size_t at) {
  const Event event = block.events[at];
  std::size_t more = 0;
  Group group;
  group.ticks = format::event_ticks(event, block.ticks);
  if (event == 0 || format::event_is(event, Mark::kPad)) {
    group.empty = true;
  } else if (format::event_is(event, Mark::kUnwound) || format::event_is(event, Mark::kJumped)) {
    more = 1;
  } else if (format::event_is(event, Mark::kSetPlace)) {
    more = 1;
    group.set_place = true;
  } else if (format::event_is(event, Mark::kSwitched)) {
    more = 2;
  }
  more = std::min(more, block.events.size() - at - 1);
  if (format::event_is(event, Mark::kUnwound) && more == 1)
    group.ticks = format::event_ticks(block.events[at + 1], block.ticks);
  group.words = block.events.subspan(at, 1 + more);
  return group;
}

template <typename Use>
void each_group(const reader::BlockView& block, Use&& use) {
  for (std::size_t at = 0; at < block.events.size();) {
    const Group group = group_at(block, at);
    at += group.words.size();
    if (!group.empty) use(group);
  }
}

class ThreadCut {
 public:
  ThreadCut(const Scope& scope, const Scope::Part& part, collect::TraceWriter& writer)
      : trace_(scope.index->trace()),
        part_(part),
        calls_(part.thread->calls),
        blocks_(trace_.blocks(*part.thread->thread)),
        sink_(writer, trace_.processes()[part.thread->thread->process].index, part.thread->thread->index) {
    for (const reader::Function& function : trace_.processes()[part.thread->thread->process].functions) {
      if (function.tail_exit && function.of != 0) tail_exit_of_.emplace(function.of, function.id);
    }
  }

  void write() {
    const TickRange range = part_.rows.range;
    before(range.begin);
    within(range);
    after(range.end);
    sink_.flush();
  }

 private:
  // Enters of what was running, and the places set since: a longjmp in the range may go there.
  void before(std::uint64_t begin) {
    const std::vector<std::uint32_t>& outer = part_.rows.outer;
    if (outer.empty()) return;
    std::size_t next = 0;
    const auto enters_until = [&](std::uint64_t ticks) {
      for (; next < outer.size() && calls_.begin[outer[next]] <= ticks; ++next) {
        const std::uint32_t row = outer[next];
        // One whose enter is lost has none here either.
        if ((calls_.marks[row] & reader::kCallOpenBegin) == 0) {
          sink_.put(calls_.begin[row], format::make_event(calls_.begin[row], false, calls_.function[row]));
        }
      }
    };
    for (const reader::BlockView& block : blocks_) {
      if (block.ticks >= begin) break;
      each_group(block, [&](const Group& group) {
        if (!group.set_place || group.ticks >= begin || group.ticks < calls_.begin[outer.front()]) return;
        enters_until(group.ticks);
        sink_.put(group.ticks, group.words);
      });
    }
    enters_until(begin);
  }

  void within(TickRange range) {
    const reader::BlockView* last = nullptr;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const reader::BlockView& block = blocks_[i];
      if (i + 1 < blocks_.size() && blocks_[i + 1].ticks < range.begin) continue;
      if (block.ticks >= range.end) break;
      if (last != nullptr && block.sequence != last->sequence + 1) sink_.gap(block.sequence - last->sequence - 1);
      last = &block;
      each_group(block, [&](const Group& group) {
        if (group.ticks >= range.begin && group.ticks < range.end) sink_.put(group.ticks, group.words);
      });
    }
  }

  // Exits of what ran on, the innermost first.
  void after(std::uint64_t end) {
    if (end == std::numeric_limits<std::uint64_t>::max()) return;
    const RowRange at_end = rows_in(calls_, {end, end + 1});
    std::uint64_t jumped_at = 0;
    for (auto row = at_end.outer.rbegin(); row != at_end.outer.rend(); ++row) {
      const std::uint64_t ticks = calls_.end(*row);
      const std::uint8_t marks = calls_.marks[*row];
      if ((marks & reader::kCallOpenEnd) != 0) continue;
      if ((marks & reader::kCallJumped) != 0) {
        // One mark ends all that were jumped over.
        if (ticks != jumped_at) copy_jump(ticks);
        jumped_at = ticks;
        continue;
      }
      std::uint32_t id = calls_.function[*row];
      if ((marks & reader::kCallTail) != 0) {
        if (const auto second = tail_exit_of_.find(id); second != tail_exit_of_.end()) id = second->second;
      }
      const Event words[] = {format::make_mark(ticks, Mark::kUnwound), format::make_event(ticks, true, id)};
      sink_.put(ticks, (marks & reader::kCallUnwound) != 0 ? std::span<const Event>(words)
                                                           : std::span<const Event>(words + 1, 1));
    }
  }

  void copy_jump(std::uint64_t ticks) {
    for (const reader::BlockView& block : blocks_) {
      if (block.ticks > ticks) return;
      bool found = false;
      each_group(block, [&](const Group& group) {
        if (found || group.ticks != ticks || !format::event_is(group.words[0], Mark::kJumped)) return;
        sink_.put(ticks, group.words);
        found = true;
      });
      if (found) return;
    }
  }

  const reader::Trace& trace_;
  const Scope::Part& part_;
  const CallColumns& calls_;
  std::span<const reader::BlockView> blocks_;
  BlockSink sink_;
  std::map<std::uint32_t, std::uint32_t> tail_exit_of_;
};

}  // namespace

Result<std::vector<std::byte>> cut_trace(const Scope& scope) {
  const reader::Trace& trace = scope.index->trace();
  std::uint64_t events = 0;
  for (const Scope::Part& part : scope.parts)
    events += 2 * (part.rows.outer.size() + (part.rows.last - part.rows.first));
  if (events > kMaxCutEvents) {
    return Error{"the range has about " + std::to_string(events / 2) + " calls, and a cut may have " +
                 std::to_string(kMaxCutEvents / 2) + ": choose a shorter one, or copy " + trace.name()};
  }
  std::vector<std::byte> bytes;
  {
    auto writer = collect::TraceWriter::to_memory(bytes);
    writer.add_processes(trace.processes());
    writer.add_clock(trace.clock());
    for (const reader::Process& process : trace.processes()) {
      writer.add_modules(process.index, process.modules);
      writer.add_functions(process.index, process.functions);
      if (trace.resolved()) writer.add_symbols(process.index, process.functions);
      std::vector<reader::Thread> threads;
      for (const Scope::Part& part : scope.parts) {
        if (trace.processes()[part.thread->thread->process].index == process.index && !part.rows.empty()) {
          threads.push_back(*part.thread->thread);
        }
      }
      writer.add_threads(process.index, threads);
    }
    for (const Scope::Part& part : scope.parts) {
      if (!part.rows.empty()) ThreadCut(scope, part, writer).write();
    }
    if (!trace.states().empty()) {
      const TickRange& range = scope.parts.empty() ? TickRange{} : scope.parts.front().rows.range;
      const std::uint64_t begin = std::max(range.begin, trace.states().source().begin_ticks);
      writer.add_states(reader::cut_states(trace.states().log(), begin, range.end));
    }
    for (const reader::SourceFile& source : trace.sources()) writer.add_source(source.path, source.text);
    const auto status = writer.finish();
    if (!status) return status.error();
  }
  return bytes;
}

}  // namespace karst::view
