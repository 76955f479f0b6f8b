#include "collect/recording.h"

#include <algorithm>
#include <optional>
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

void mark_seen(format::Event e, std::vector<bool>& seen) {
  const std::uint32_t id = format::event_function(e);
  if (id < seen.size()) seen[id] = true;
}

/// New ids for the functions of a forked child that occur in it, dense from 1: a child that makes ten calls is not to
/// carry the table of a large program, in the file and in every reader's memory.
class Renumbering {
 public:
  std::uint32_t add(std::uint32_t id) {
    return to_.try_emplace(id, static_cast<std::uint32_t>(to_.size()) + 1).first->second;
  }
  format::Event operator()(format::Event e) const {
    if (e == 0 || format::event_is_mark(e)) return e;
    const auto to = to_.find(format::event_function(e));
    // What was in no table stays unknown.
    const std::uint32_t id = to != to_.end() ? to->second : format::kMaxFunctionId;
    return (e & ~format::Event{KARST_EVENT_ID_MASK}) | id;
  }
  bool knows(std::uint32_t id) const { return to_.contains(id); }

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> to_;
};

/// What a process needs on its way into the file.
struct Writing {
  std::optional<Renumbering> ids;  ///< of a forked child
  std::uint32_t heir = 0;          ///< index of the thread that has the inherited calls
  bool inherits = false;
  std::vector<format::Event> first;  ///< the inherited calls' enters, and the places within
  std::vector<std::uint64_t> first_ticks;
};

/// The index of the thread that a forked child began with; none when it made no call.
const reader::Thread* first_thread(const reader::Process& p) {
  for (const reader::Thread& t : p.threads)
    if (t.tid == p.pid) return &t;
  return nullptr;
}

bool has_whole_history(const History& history, std::uint32_t thread) {
  const auto blocks = history.blocks();
  return std::any_of(blocks.begin(), blocks.end(),
                     [thread](const ArenaBlock& b) { return b.thread == thread && b.sequence == 0; });
}

/// Functions of a forked child get the names that its ancestor's have, and ids of its own.
/// False when some are left without a name.
bool take_names(reader::Process& child, const reader::Process& ancestor, const RecordedProcess& recorded,
                Renumbering& ids) {
  std::vector<reader::Function> functions = std::move(child.functions);
  child.functions.clear();
  child.functions.emplace_back();
  bool all_named = true;
  const auto add = [&](reader::Function f) {
    const std::uint32_t from = f.id;
    if (ids.knows(from)) return;
    const reader::Function* same = from < ancestor.functions.size() ? &ancestor.functions[from] : nullptr;
    if (same != nullptr && same->id == from && same->address == f.address && same->module == f.module &&
        f.module < ancestor.modules.size() && f.module < child.modules.size() &&
        ancestor.modules[f.module].path == child.modules[f.module].path) {
      f = *same;
      for (reader::InlinedCall call : ancestor.inlined.of(from)) {
        call.function = static_cast<std::uint32_t>(child.functions.size());
        call.name = child.inlined.text_number(ancestor.inlined.text(call.name));
        call.file = child.inlined.text_number(ancestor.inlined.text(call.file));
        call.call_file = child.inlined.text_number(ancestor.inlined.text(call.call_file));
        child.inlined.add(call);
      }
    }
    all_named = all_named && !f.name.empty();
    f.id = ids.add(from);
    child.functions.push_back(std::move(f));
  };
  for (const OpenItem& item : recorded.inherited.items())
    if (item.function != 0 && item.function < ancestor.functions.size() && ancestor.functions[item.function].id != 0)
      add(ancestor.functions[item.function]);
  for (reader::Function& f : functions) add(std::move(f));
  child.inlined.settle();
  return all_named;
}

/// What a forked child was inside when it began becomes events before its own.
void prepare_inherited(Writing& child, reader::Process& process, const RecordedProcess& recorded) {
  const reader::Thread* heir = first_thread(process);
  if (heir == nullptr) return;
  child.heir = heir->index;
  child.inherits = has_whole_history(recorded.history, heir->index);
  if (!child.inherits) return;  // its own oldest calls are gone already
  std::uint32_t calls = 0;
  for (const OpenItem& item : recorded.inherited.items()) {
    if (item.function == 0) {
      child.first.push_back(format::make_mark(item.ticks, format::Mark::kSetPlace));
      child.first.push_back(item.place << KARST_EVENT_TICK_SHIFT | format::make_place(0));
      child.first_ticks.insert(child.first_ticks.end(), 2, item.ticks);
    } else {
      child.first.push_back((*child.ids)(format::make_event(item.ticks, false, item.function)));
      child.first_ticks.push_back(item.ticks);
      ++calls;
    }
  }
  for (reader::Thread& t : process.threads)
    if (t.index == child.heir) t.inherited = calls;
}

/// Blocks of the inherited events; returns by how much the thread's own sequence numbers go up.
std::uint64_t write_inherited(const Writing& w, std::uint32_t process, const RecordedProcess& recorded,
                              TraceWriter& writer, RecordingSummary& summary) {
  // What began before is not known: a thread whose history does not begin at 0 may return from calls without an enter.
  std::uint64_t sequence = recorded.inherited.complete() ? 0 : 1;
  for (std::size_t begin = 0; begin < w.first.size();) {
    std::size_t end = begin + 1;
    const auto epoch = [&](std::size_t i) { return w.first_ticks[i] & ~format::kEventTickMask; };
    while (end < w.first.size() && epoch(end) == epoch(begin) && end - begin < format::kEventsPerBlock - 2) ++end;
    if (end < w.first.size() && format::event_is(w.first[end], format::Mark::kPlace)) ++end;
    writer.add_block(process, w.heir, sequence++, w.first_ticks[begin], std::span(w.first).subspan(begin, end - begin));
    summary.events += end - begin;
    begin = end;
  }
  return sequence;
}

/// Streams the blocks of one process into the file; marks the functions that occur.
void write_blocks(const RecordedProcess& recorded, const Writing& w, std::uint32_t process,
                  const RecordingOptions& options, TraceWriter& writer, RecordingSummary& summary, Span& span,
                  std::vector<bool>& seen) {
  std::unordered_map<std::uint32_t, CallCounter> threads;
  std::vector<format::Event> buffer;
  std::vector<format::Event> renumbered;
  std::uint64_t shift = 0;
  if (w.inherits) {
    shift = write_inherited(w, process, recorded, writer, summary);
    threads[w.heir].depth = count_calls(recorded.inherited.items());
    for (const format::Event e : w.first) mark_seen(e, seen);
  }
  for (const ArenaBlock& block : recorded.history.blocks()) {
    advance(options, 1);
    auto events = recorded.history.read(block, buffer);
    if (events.empty()) continue;
    if (w.ids) {
      renumbered.assign(events.begin(), events.end());
      std::transform(renumbered.begin(), renumbered.end(), renumbered.begin(), *w.ids);
      events = renumbered;
    }
    const std::uint64_t sequence = block.sequence + (block.thread == w.heir ? shift : 0);
    writer.add_block(process, block.thread, sequence, block.ticks, events);
    threads[block.thread].count(events);
    summary.events += events.size();
    span.include(block.ticks);
    const auto has_time = [](format::Event e) { return e != 0 && format::event_has_time(e); };
    const auto last = std::find_if(events.rbegin(), events.rend(), has_time);
    if (last != events.rend()) span.include(format::event_ticks(*last, block.ticks));
    for (const format::Event e : events) mark_seen(e, seen);
  }
  summary.threads += threads.size();
  for (const auto& [thread, counter] : threads) summary.calls += counter.calls;
}

}  // namespace

std::uint64_t work_of(const std::vector<RecordedProcess>& processes) {
  std::uint64_t work = 0;
  for (const RecordedProcess& p : processes) work += p.history.function_count() + p.history.blocks().size();
  return work;
}

RecordingSummary record(std::vector<RecordedProcess>& recorded, std::vector<reader::ClockPair> pairs,
                        const RecordingOptions& options, TraceWriter& writer) {
  RecordingSummary summary;
  std::vector<reader::Process> processes;
  std::vector<Writing> all(recorded.size());
  std::vector<std::size_t> image;  // of each process: the one before it, or itself, that was not forked
  const reader::Process nobody;
  processes.reserve(recorded.size());
  for (RecordedProcess& r : recorded) {
    if (r.forked) r.history.detach();
    reader::Process p = r.history.process();
    p.index = static_cast<std::uint32_t>(processes.size());
    p.wait_status = r.wait_status;
    p.parent = static_cast<std::uint32_t>(r.parent + 1);
    if (r.forked) p.flags |= format::kProcessForked;
    if (r.end_ticks != 0) {
      p.flags |= format::kProcessEnded;
      if (p.end_ticks == 0) p.end_ticks = r.end_ticks;
    }
    for (reader::Thread& t : p.threads) t.process = p.index;
    summary.overwritten += p.overwritten_events;
    summary.lost += p.lost_events;
    advance(options, p.functions.size());
    image.push_back(r.forked && r.parent >= 0 ? image[static_cast<std::size_t>(r.parent)] : p.index);
    bool all_named = false;
    if (r.forked) {
      Writing& w = all[p.index];
      w.ids.emplace();
      all_named = take_names(p, image.back() < p.index ? processes[image.back()] : nobody, r, *w.ids);
      prepare_inherited(w, p, r);
    } else {
      pairs.push_back(r.history.start());
    }
    if (!all_named) {
      auto resolved = symbols::resolve(p, options.resolve);
      for (auto& problem : resolved.problems) summary.problems.push_back(std::move(problem));
    }
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
    write_blocks(recorded[p.index], all[p.index], p.index, options, writer, summary, span, seen);
    p.inlined.keep(seen);
    writer.add_inlined(p.index, p.inlined);
    // Sources are kept of what was called, not of all that could have been.
    std::erase_if(p.functions, [&seen](const reader::Function& f) { return !seen[f.id]; });
  }
  summary.span_ns = clock.to_ns(span.length());
  if (options.states != nullptr) writer.add_states(*options.states);
  if (options.source) {
    const symbols::Sources sources = symbols::collect_sources(processes);
    for (const reader::SourceFile& file : sources.files) writer.add_source(file.path, file.text);
    summary.problems.insert(summary.problems.end(), sources.problems.begin(), sources.problems.end());
  }
  return summary;
}

}  // namespace karst::collect
