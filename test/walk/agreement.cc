#include "test/walk/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <list>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "collect/live/sample.h"
#include "collect/record/call_counter.h"
#include "collect/record/open_calls.h"
#include "reader/open_state.h"
#include "runtime/budget/budget_sample.h"
#include "walk/words.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

using reader::BlockView;
using reader::Calls;

constexpr std::size_t kMoments = 24;  // of a thread at which what is open is compared

/// One thread and what the reader makes of it.
struct Subject {
  const reader::Trace& trace;
  const reader::Process& process;
  const reader::Thread& thread;
  std::span<const reader::StoredBlock> stored;
  std::vector<BlockView> blocks;  ///< the same with their events
  Calls calls;
  std::vector<std::string>& wrong;

  template <typename... Arguments>
  void complain(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    wrong.push_back(fmt::format("process {} thread {}: {}", process.pid, thread.tid,
                                fmt::format(text, std::forward<Arguments>(arguments)...)));
  }
  collect::TailOwner tail_owner() const {
    return [this](std::uint32_t id) {
      return id < process.functions.size() && process.functions[id].tail_exit ? process.functions[id].of : 0;
    };
  }
  /// One piece without a gap.
  bool is_whole() const {
    for (std::size_t i = 1; i < stored.size(); ++i)
      if (!follows(i)) return false;
    return true;
  }
  bool follows(std::size_t i) const { return i != 0 && stored[i - 1].next_sequence == stored[i].sequence; }
  std::uint64_t end() const {
    const std::uint64_t ended = thread.exited_ticks != 0 ? thread.exited_ticks : process.end_ticks;
    return std::max(calls.last_ticks, ended);
  }
};

void compare_count(const Subject& s) {
  collect::CallCounter counter(s.tail_owner(), s.process.min_duration_ticks);
  for (const BlockView& block : s.blocks) counter.count(block.events, block.sequence, block.ticks);
  const auto resumed = std::count_if(s.calls.marks.begin(), s.calls.marks.end(),
                                     [](std::uint8_t marks) { return (marks & reader::kCallResumed) != 0; });
  const std::uint64_t expected = s.calls.size() - static_cast<std::size_t>(resumed);
  if (counter.calls() != expected) s.complain("counted {} calls of {}", counter.calls(), expected);
}

using Item = std::tuple<std::uint32_t, std::uint64_t>;  // function and begin, or 0 and place

/// Before `last` there are whole blocks, of it the events up to `until`.
void compare_open(const Subject& s, const collect::OpenCalls& before, std::size_t last, std::uint64_t until) {
  std::vector<reader::StoredBlock> blocks(s.stored.begin(), s.stored.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  std::size_t first = last;
  while (s.follows(first)) --first;
  const BlockView& cut = s.blocks[last];
  const walk::Part part = walk::within(cut.events.data(), cut.events.size(), cut.ticks, 0, until);
  blocks.back() = blocks.back().first(part.count);
  const reader::OpenState expected = reader::open_state(s.trace, s.thread, std::span(blocks).subspan(first));
  collect::OpenCalls open = before;
  open.consume(s.blocks[last].events, s.blocks[last].ticks, until, s.tail_owner());

  std::vector<Item> wanted;
  auto place = expected.places.begin();
  for (std::size_t depth = 0; depth <= expected.calls.size(); ++depth) {
    for (; place != expected.places.end() && place->depth <= depth; ++place)
      if (place->stands) wanted.emplace_back(0, place->place);
    if (depth != expected.calls.size())
      wanted.emplace_back(expected.calls[depth].function, expected.calls[depth].begin);
  }
  std::vector<Item> got;
  for (const collect::OpenItem& item : open.items())
    got.emplace_back(item.function, item.function != 0 ? item.ticks : item.place);
  if (got != wanted)
    s.complain("{} items are open in block {} at {}, not {}", got.size(), s.blocks[last].sequence, until,
               wanted.size());
}

void compare_open(const Subject& s) {
  collect::OpenCalls open;
  const std::size_t step = s.blocks.size() / kMoments + 1;
  for (std::size_t i = 0; i < s.blocks.size(); ++i) {
    const BlockView& block = s.blocks[i];
    if (!s.follows(i) && block.sequence != 0) open.forget();
    if (i % step == 0) {
      const std::size_t stride = s.blocks.size() > kMoments ? block.events.size() : block.events.size() / kMoments + 1;
      for (std::size_t at = 0; at < block.events.size(); at += stride)
        if (block.events[at] != 0 && format::event_has_time(block.events[at]))
          compare_open(s, open, i, format::event_ticks(block.events[at], block.ticks));
      compare_open(s, open, i, ~std::uint64_t{0});
    }
    open.consume(block.events, block.ticks, ~std::uint64_t{0}, s.tail_owner());
  }
}

struct Sums {
  std::uint64_t calls = 0;
  std::uint64_t self = 0;
  std::uint64_t total = 0;
  auto operator<=>(const Sums&) const = default;
};

bool is_inside_of_its_own(const Calls& calls, std::uint32_t row) {
  const std::uint32_t function = calls.function[row];
  for (row = calls.parent[row]; row != reader::kNoParent; row = calls.parent[row])
    if (calls.function[row] == function) return true;
  return false;
}

std::map<std::uint32_t, Sums> sums_of(const Calls& calls) {
  std::vector<std::uint64_t> inside(calls.size());
  for (std::size_t row = 0; row < calls.size(); ++row)
    if (calls.parent[row] != reader::kNoParent) inside[calls.parent[row]] += calls.duration[row];
  std::map<std::uint32_t, Sums> sums;
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    Sums& f = sums[calls.function[row]];
    f.calls += (calls.marks[row] & reader::kCallOpenBegin) == 0 ? 1 : 0;
    f.self += calls.duration[row] > inside[row] ? calls.duration[row] - inside[row] : 0;
    if (!is_inside_of_its_own(calls, row)) f.total += calls.duration[row];
  }
  return sums;
}

void compare_sample(const Subject& s) {
  const auto expected = sums_of(s.calls);
  collect::ThreadSample sample(s.tail_owner(), s.calls.first_ticks, s.blocks.front().sequence == 0);
  for (const BlockView& block : s.blocks) sample.consume(block.events, block.ticks, ~std::uint64_t{0});
  sample.finish(s.end());
  std::map<std::uint32_t, Sums> got;
  for (const auto& [id, f] : sample.functions()) got[id] = {f.calls, f.self_ticks, f.total_ticks};
  if (got == expected) return;
  for (const auto& [id, f] : expected)
    if (const Sums& g = got[id]; g != f)
      s.complain("function {}: a sample has {} calls, self {}, total {}, not {}, {}, {}", id, g.calls, g.self, g.total,
                 f.calls, f.self, f.total);
  if (got.size() != expected.size()) s.complain("a sample has {} functions, not {}", got.size(), expected.size());
}

/// The budget's sample begins anywhere in a history, so the reader is asked about the same blocks without a beginning.
void compare_budget(const Subject& s, std::size_t& compared) {
  std::vector<std::byte> bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  std::vector<reader::Function> functions = s.process.functions;
  std::erase_if(functions, [](const reader::Function& f) { return f.id == 0; });
  writer.add_functions(0, functions);
  std::uint64_t sequence = 0;
  for (std::size_t i = 0; i < s.blocks.size(); ++i) {
    sequence += s.follows(i) ? 1 : 2;
    writer.add_block(0, 0, sequence, s.blocks[i].ticks, s.blocks[i].events);
  }
  if (!writer.finish().ok()) return s.complain("a trace in memory cannot be written");
  const auto trace = reader::Trace::open_memory(bytes, "copy");
  if (!trace.ok() || trace->processes().empty()) return s.complain("a trace in memory cannot be read");
  const Calls calls = reader::rebuild_calls(*trace, trace->processes()[0].threads.at(0));

  runtime::EventSample sample;
  if (!sample.create()) return s.complain("no memory");
  const collect::TailOwner tail_owner = s.tail_owner();
  const auto owner_of = [](void* context, std::uint32_t id) {
    const std::uint32_t owner = (*static_cast<const collect::TailOwner*>(context))(id);
    return owner != 0 ? owner : id;
  };
  sample.set_owner_of(owner_of, const_cast<collect::TailOwner*>(&tail_owner));
  for (std::size_t i = 0; i < s.blocks.size(); ++i) {
    const BlockView& block = s.blocks[i];
    sample.add(block.events.data(), static_cast<std::uint32_t>(block.events.size()), block.ticks, 0, 1, s.follows(i));
  }
  sample.finish();
  if (sample.forgot()) return;
  ++compared;

  using Known = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // calls, ticks, longest
  std::map<std::uint32_t, Known> expected;
  for (std::size_t row = 0; row < calls.size(); ++row) {
    auto& [count, ticks, longest] = expected[calls.function[row]];
    ++count;
    ticks += calls.duration[row];
    longest = std::max(longest, calls.duration[row]);
  }
  std::map<std::uint32_t, Known> got;
  for (std::uint32_t i = 0; i < sample.size(); ++i)
    if (sample[i].calls != 0) got[sample[i].function] = {sample[i].calls, sample[i].ticks, sample[i].longest};
  for (const auto& [id, known] : expected)
    if (got[id] != known)
      s.complain("function {}: the budget sees {} calls of {} ticks, the reader {} of {}", id, std::get<0>(got[id]),
                 std::get<1>(got[id]), std::get<0>(known), std::get<1>(known));
  if (got.size() != expected.size()) s.complain("the budget sees {} functions, not {}", got.size(), expected.size());
}

}  // namespace

namespace {

/// Blocks whose events lie in `memory`.
std::vector<BlockView> read_all(const reader::Trace& trace, std::span<const reader::StoredBlock> stored,
                                std::list<std::vector<format::Event>>& memory) {
  reader::EventReader read = trace.event_reader();
  std::vector<BlockView> blocks;
  for (const reader::StoredBlock& block : stored) {
    const BlockView view = read(block);
    const auto& events = memory.emplace_back(view.events.begin(), view.events.end());
    blocks.push_back({view.sequence, view.ticks, events});
  }
  return blocks;
}

}  // namespace

Agreement agreement_on(const reader::Trace& trace) {
  Agreement result;
  std::vector<std::string>& wrong = result.wrong;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) {
      std::list<std::vector<format::Event>> memory;
      const std::span<const reader::StoredBlock> stored = trace.blocks(thread);
      const Subject s{
          trace, process, thread, stored, read_all(trace, stored, memory), reader::rebuild_calls(trace, thread), wrong};
      if (s.blocks.empty() || !process.switching.empty()) continue;
      compare_count(s);
      compare_open(s);
      ++result.threads;
      if (process.min_duration_ticks != 0) continue;
      if (s.is_whole()) compare_sample(s);
      compare_budget(s, result.threads_of_budget);
    }
  return result;
}

}  // namespace karst::test
