#include "collect/recording.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "collect/clock.h"
#include "format/event.h"
#include "format/trace.h"
#include "symbols/sources.h"

namespace karst::collect {
namespace {

/// Counts a thread's calls as its events pass by, in order: each enter is one, and so is each exit whose enter is
/// no longer there.
struct CallCounter {
  std::uint64_t calls = 0;
  std::int64_t depth = 0;

  void count(std::span<const format::Event> events) {
    for (const format::Event e : events) {
      if (e == 0 || format::event_is_mark(e)) continue;
      if (!format::event_is_exit(e)) {
        ++calls;
        ++depth;
      } else if (--depth < 0) {
        ++calls;
        depth = 0;
      }
    }
  }
};

class Span {
 public:
  void include(std::uint64_t ticks) {
    first_ = std::min(first_, ticks);
    last_ = std::max(last_, ticks);
  }
  std::uint64_t length() const { return last_ > first_ ? last_ - first_ : 0; }

 private:
  std::uint64_t first_ = ~std::uint64_t{0};
  std::uint64_t last_ = 0;
};

void advance(const RecordingOptions& options, std::uint64_t by) {
  if (options.done != nullptr) *options.done += by;
}

/// Streams the blocks of one process into the file; marks the functions that occur.
void write_blocks(const ArenaView& arena, std::uint32_t process, const RecordingOptions& options, TraceWriter& writer,
                  RecordingSummary& summary, Span& span, std::vector<bool>& seen) {
  std::unordered_map<std::uint32_t, CallCounter> threads;
  std::vector<format::Event> buffer;
  for (const ArenaBlock& block : arena.blocks()) {
    advance(options, 1);
    const auto events = arena.read(block, buffer);
    if (events.empty()) continue;
    writer.add_block(process, block.thread, block.sequence, block.ticks, events);
    threads[block.thread].count(events);
    summary.events += events.size();
    span.include(block.ticks);
    const auto has_time = [](format::Event e) { return e != 0 && !format::event_is(e, format::Mark::kPlace); };
    const auto last = std::find_if(events.rbegin(), events.rend(), has_time);
    if (last != events.rend()) span.include(format::event_ticks(*last, block.ticks));
    for (const format::Event e : events) {
      const std::uint32_t id = format::event_function(e);
      if (id < seen.size()) seen[id] = true;
    }
  }
  summary.threads += threads.size();
  for (const auto& [thread, counter] : threads) summary.calls += counter.calls;
}

}  // namespace

std::uint64_t work_of(const std::vector<RecordedProcess>& processes) {
  std::uint64_t work = 0;
  for (const RecordedProcess& p : processes) work += p.arena.function_count() + p.arena.blocks().size();
  return work;
}

RecordingSummary record(std::vector<RecordedProcess>& recorded, std::vector<reader::ClockPair> pairs,
                        const RecordingOptions& options, TraceWriter& writer) {
  RecordingSummary summary;
  std::vector<reader::Process> processes;
  for (RecordedProcess& r : recorded) {
    reader::Process p = r.arena.process();
    p.index = static_cast<std::uint32_t>(processes.size());
    p.wait_status = r.wait_status;
    if (r.end_ticks != 0) {
      p.flags |= format::kProcessEnded;
      if (p.end_ticks == 0) p.end_ticks = r.end_ticks;
    }
    for (reader::Thread& t : p.threads) t.process = p.index;
    pairs.push_back(r.arena.start());
    summary.overwritten += p.overwritten_events;
    summary.lost += p.lost_events;
    auto resolved = symbols::resolve(p, options.resolve);
    advance(options, p.functions.size());
    for (auto& problem : resolved.problems) summary.problems.push_back(std::move(problem));
    processes.push_back(std::move(p));
  }
  summary.processes = processes.size();
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
  const reader::Clock clock = make_clock(std::move(pairs));

  writer.add_processes(processes);
  writer.add_clock(clock);
  for (const reader::Process& p : processes) {
    writer.add_modules(p.index, p.modules);
    writer.add_functions(p.index, p.functions);
    writer.add_symbols(p.index, p.functions);
    writer.add_threads(p.index, p.threads);
  }
  Span span;
  for (reader::Process& p : processes) {
    std::vector<bool> seen(p.functions.size());
    write_blocks(recorded[p.index].arena, p.index, options, writer, summary, span, seen);
    p.inlined.keep(seen);
    writer.add_inlined(p.index, p.inlined);
    // Sources are kept of what was called, not of all that could have been.
    std::erase_if(p.functions, [&seen](const reader::Function& f) { return !seen[f.id]; });
  }
  summary.span_ns = clock.to_ns(span.length());
  if (options.source) {
    const symbols::Sources sources = symbols::collect_sources(processes);
    for (const reader::SourceFile& file : sources.files) writer.add_source(file.path, file.text);
    summary.problems.insert(summary.problems.end(), sources.problems.begin(), sources.problems.end());
  }
  return summary;
}

}  // namespace karst::collect
