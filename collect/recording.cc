#include "collect/recording.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "collect/clock.h"
#include "format/event.h"
#include "format/moments.h"
#include "format/trace.h"
#include "symbols/sources.h"

namespace karst::collect {
namespace {

/// Counts a thread's calls as its events pass by, in order: each enter is one, and so is each exit whose enter is
/// no longer there. Not those that readers leave out (docs/trace-format.md, MODE).
struct CallCounter {
  struct Open {
    std::uint64_t begin;
    bool has_content;
  };
  std::uint64_t calls = 0;
  std::int64_t depth = 0;
  std::uint64_t min_duration = 0;
  std::vector<Open> open;  // with a least duration alone

  void count(std::span<const format::Event> events, std::uint64_t block_ticks) {
    for (const format::Event e : events) {
      if (e == 0) continue;
      if (min_duration != 0) follow(e, block_ticks);
      if (format::event_is_mark(e)) continue;
      if (!format::event_is_exit(e)) {
        ++calls;
        ++depth;
      } else if (--depth < 0) {
        ++calls;
        depth = 0;
      }
    }
  }

 private:
  void follow(format::Event e, std::uint64_t block_ticks) {
    if (!format::event_is_exit(e)) {
      open.push_back({format::event_ticks(e, block_ticks), false});
      return;
    }
    if (open.empty()) return;
    if (!format::event_is_mark(e)) {
      const Open ended = open.back();
      open.pop_back();
      if (!ended.has_content && format::event_ticks(e, block_ticks) - ended.begin < min_duration) {
        --calls;
        return;
      }
    }
    if (!open.empty()) open.back().has_content = true;
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
  void add(std::uint32_t id) { to_.try_emplace(id, 0); }
  /// Once all are added: new ids are in the order of the old ones, so a range of these is one of new ones.
  void settle() {
    old_.reserve(to_.size());
    for (const auto& [id, to] : to_) old_.push_back(id);
    std::sort(old_.begin(), old_.end());
    for (std::size_t i = 0; i < old_.size(); ++i) to_[old_[i]] = static_cast<std::uint32_t>(i + 1);
  }
  std::uint32_t of(std::uint32_t id) const { return to_.at(id); }
  /// The switch of those of its functions that there are; none if there are none.
  std::optional<reader::Switch> operator()(reader::Switch s) const {
    if (s.first == 0) return s;
    const auto number = [this](std::uint64_t id) {
      return static_cast<std::uint32_t>(std::lower_bound(old_.begin(), old_.end(), id) - old_.begin());
    };
    const std::uint32_t begin = number(s.first);
    s.count = number(std::uint64_t{s.first} + s.count) - begin;
    s.first = begin + 1;
    return s.count != 0 ? std::optional(s) : std::nullopt;
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
  std::vector<std::uint32_t> old_;
};

/// What threads were inside where the range begins, as events at that moment.
struct RangeBegin {
  std::unordered_map<std::uint32_t, std::vector<format::Event>> enters;  // by thread
};

/// What a process needs on its way into the file.
struct Writing {
  std::optional<Renumbering> ids;  ///< of a forked child
  std::uint32_t heir = 0;          ///< index of the thread that has the inherited calls
  bool inherits = false;
  std::vector<format::Event> first;  ///< the inherited calls' enters, and the places within
  std::vector<std::uint64_t> first_ticks;
  RangeBegin begin;
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
  std::vector<reader::Function> all;
  const auto gather = [&](reader::Function f) {
    if (ids.knows(f.id)) return;
    ids.add(f.id);
    all.push_back(std::move(f));
  };
  for (const OpenItem& item : recorded.inherited.items())
    if (item.function != 0 && item.function < ancestor.functions.size() && ancestor.functions[item.function].id != 0)
      gather(ancestor.functions[item.function]);
  for (reader::Function& f : functions) gather(std::move(f));
  ids.settle();
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id < b.id; });

  bool all_named = true;
  const auto add = [&](reader::Function f) {
    const std::uint32_t from = f.id;
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
    f.id = ids.of(from);
    child.functions.push_back(std::move(f));
  };
  for (reader::Function& f : all) add(std::move(f));
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
      child.first.push_back(format::make_place(item.place << 4, format::Mark::kSetPlace));
      child.first_ticks.push_back(item.ticks);
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
    writer.add_block(process, w.heir, sequence++, w.first_ticks[begin], std::span(w.first).subspan(begin, end - begin));
    summary.events += end - begin;
    begin = end;
  }
  return sequence;
}

RangeBegin begin_of_range(const History& history, std::uint64_t from, const std::vector<reader::Switch>& switches) {
  std::vector<ArenaBlock> blocks = history.blocks();
  std::erase_if(blocks, [from](const ArenaBlock& b) { return b.ticks >= from; });
  std::sort(blocks.begin(), blocks.end(), [](const ArenaBlock& a, const ArenaBlock& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.sequence < b.sequence;
  });
  const OpenCalls::AddressOf address_of = [&history](std::uint32_t id) { return history.address_of(id); };
  RangeBegin range;
  std::vector<format::Event> buffer;
  for (std::size_t i = 0; i < blocks.size();) {
    OpenCalls open;
    const std::uint32_t thread = blocks[i].thread;
    std::uint64_t next = blocks[i].sequence;
    for (; i < blocks.size() && blocks[i].thread == thread; ++i) {
      if (blocks[i].sequence != next) open.forget();
      next = blocks[i].sequence + 1;
      open.consume(history.read(blocks[i], buffer), blocks[i].ticks, from - 1, address_of);
    }
    open.leave_out_unsure(switches, from);
    std::vector<format::Event>& enters = range.enters[thread];
    for (const OpenItem& item : open.items()) {
      if (item.function == 0) {
        enters.push_back(format::make_place(item.place << 4, format::Mark::kSetPlace));
      } else {
        enters.push_back(format::make_event(from, false, item.function));
      }
    }
  }
  return range;
}

/// The events of a block that are in the range; marks stay with what belongs to them.
std::span<const format::Event> within(std::span<const format::Event> events, std::uint64_t block_ticks,
                                      std::uint64_t from, std::uint64_t to) {
  const auto ticks_at = [&](std::size_t i) -> std::optional<std::uint64_t> {
    if (events[i] == 0 || !format::event_has_time(events[i])) return std::nullopt;
    return format::event_ticks(events[i], block_ticks);
  };
  std::size_t begin = 0;
  if (block_ticks < from)
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto ticks = ticks_at(i);
      if (ticks && *ticks >= from) break;
      begin = i + 1;
    }
  std::size_t end = begin;
  for (std::size_t i = begin; i < events.size(); ++i) {
    const auto ticks = ticks_at(i);
    if (ticks && *ticks > to) break;
    end = i + 1;
  }
  return events.subspan(begin, end - begin);
}

/// Streams the blocks of one process into the file; marks the functions that occur.
void write_blocks(const RecordedProcess& recorded, const Writing& w, std::uint32_t process,
                  const RecordingOptions& options, TraceWriter& writer, RecordingSummary& summary, Span& span,
                  std::vector<bool>& seen) {
  std::unordered_map<std::uint32_t, CallCounter> threads;
  const std::uint64_t min_duration = recorded.history.min_duration_ticks();
  std::vector<format::Event> buffer;
  std::vector<format::Event> renumbered;
  std::uint64_t shift = 0;
  if (w.inherits) {
    shift = write_inherited(w, process, recorded, writer, summary);
    threads[w.heir].depth = count_calls(recorded.inherited.items());
    for (const format::Event e : w.first) mark_seen(e, seen);
  }
  const bool cut = options.from != 0;
  RangeBegin range = w.begin;
  const auto put_begin = [&](std::uint32_t thread, std::uint64_t sequence) {
    const auto at = range.enters.find(thread);
    if (at == range.enters.end() || at->second.empty()) return;
    writer.add_block(process, thread, sequence, options.from, at->second);
    threads[thread].depth += static_cast<std::int64_t>(at->second.size());
    threads[thread].calls += at->second.size();
    summary.events += at->second.size();
    for (const format::Event e : at->second) mark_seen(e, seen);
    at->second.clear();
    span.include(options.from);
  };
  for (const ArenaBlock& block : recorded.history.blocks()) {
    advance(options, 1);
    if (block.ticks > options.to) continue;
    auto events = within(recorded.history.read(block, buffer), block.ticks, options.from, options.to);
    if (events.empty()) continue;
    // Number 0 would say that the thread's history begins here.
    if (cut) put_begin(block.thread, block.sequence + 1);
    if (w.ids) {
      renumbered.assign(events.begin(), events.end());
      std::transform(renumbered.begin(), renumbered.end(), renumbered.begin(), *w.ids);
      events = renumbered;
    }
    const std::uint64_t sequence = block.sequence + (block.thread == w.heir ? shift : 0) + (cut ? 2 : 0);
    writer.add_block(process, block.thread, sequence, block.ticks, events);
    CallCounter& counter = threads[block.thread];
    counter.min_duration = min_duration;
    counter.count(events, block.ticks);
    summary.events += events.size();
    span.include(std::max(block.ticks, options.from));
    const auto has_time = [](format::Event e) { return e != 0 && format::event_has_time(e); };
    const auto last = std::find_if(events.rbegin(), events.rend(), has_time);
    if (last != events.rend()) span.include(format::event_ticks(*last, block.ticks));
    for (const format::Event e : events) mark_seen(e, seen);
  }
  // Threads that did nothing in the range sit where they were.
  while (!range.enters.empty()) {
    put_begin(range.enters.begin()->first, 1);
    range.enters.erase(range.enters.begin());
  }
  summary.threads += threads.size();
  for (const auto& [thread, counter] : threads) summary.calls += counter.calls;
}

/// What the tables say of a process and its threads, at the range's end.
void fit_to_range(reader::Process& p, const History& history, const RecordingOptions& options, RangeBegin& begin) {
  const std::uint64_t from = options.from;
  const std::uint64_t to = options.to;
  if (p.end_ticks > to) p.end_ticks = 0;
  std::erase_if(p.threads, [=](const reader::Thread& t) {
    return t.joined_ticks > to || (t.exited_ticks != 0 && t.exited_ticks < from);
  });
  for (reader::Thread& t : p.threads) {
    if (t.exited_ticks <= to) continue;
    t.exited = false;
    t.exited_ticks = 0;
  }
  if (from != 0) {
    begin = begin_of_range(history, from, history.switches());
    for (reader::Thread& t : p.threads) {
      const auto at = begin.enters.find(t.index);
      t.cut = at != begin.enters.end() && !at->second.empty();
      t.inherited =
          !t.cut ? 0
                 : static_cast<std::uint32_t>(std::count_if(at->second.begin(), at->second.end(),
                                                            [](format::Event e) { return !format::event_is_exit(e); }));
    }
  }
  if (options.moment.empty()) return;
  reader::Moment moment;
  moment.number = 1;
  moment.kind = static_cast<std::uint32_t>(format::MomentKind::kSnapshot);
  moment.begin_ticks = moment.kept_from = std::max(from, p.start_ticks);
  moment.end_ticks = moment.kept_to = to;
  moment.whole_from = moment.kept_from;
  moment.thread = format::kNoThread;
  moment.what = options.moment;
  p.moments.push_back(std::move(moment));
}

}  // namespace

namespace {

/// What the process kept by itself, of the range.
void take_moments(RecordedProcess& process, const RecordingOptions& options) {
  std::vector<reader::Moment>& all = process.moments;
  for (reader::Moment& moment : process.history.moments())
    if (moment.kept_from <= options.to && moment.kept_to >= options.from) all.push_back(std::move(moment));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin_ticks < b.begin_ticks; });
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
    take_moments(r, options);
    p.index = static_cast<std::uint32_t>(processes.size());
    p.wait_status = r.wait_status;
    p.parent = static_cast<std::uint32_t>(r.parent + 1);
    if (r.forked) p.flags |= format::kProcessForked;
    if (r.end_ticks != 0) {
      p.flags |= format::kProcessEnded;
      if (p.end_ticks == 0) p.end_ticks = r.end_ticks;
    }
    for (reader::Thread& t : p.threads) t.process = p.index;
    fit_to_range(p, r.history, options, all[p.index].begin);
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
      for (reader::Moment& moment : r.moments)
        moment.function = w.ids->knows(moment.function) ? w.ids->of(moment.function) : 0;
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
  std::uint32_t moments = options.moment.empty() ? 0 : 1;
  for (const reader::Process& p : processes) {
    writer.add_modules(p.index, p.modules);
    writer.add_functions(p.index, p.functions);
    writer.add_symbols(p.index, p.functions);
    writer.add_threads(p.index, p.threads);
    for (reader::Moment& moment : recorded[p.index].moments) moment.number = ++moments;
    writer.add_moments(p.index, recorded[p.index].moments);
    writer.add_mode(p);
  }
  Span span;
  for (reader::Process& p : processes) {
    std::vector<bool> seen(p.functions.size());
    write_blocks(recorded[p.index], all[p.index], p.index, options, writer, summary, span, seen);
    // Read again: the process may have gone on while its blocks were copied, and what it switched meanwhile concerns
    // them.
    std::vector<reader::Switch> switches = recorded[p.index].history.switches();
    if (const auto& ids = all[p.index].ids) {
      std::vector<reader::Switch> renumbered;
      for (const reader::Switch& s : switches)
        if (const auto known = (*ids)(s)) renumbered.push_back(*known);
      switches = std::move(renumbered);
    }
    std::erase_if(switches, [&options](const reader::Switch& s) { return s.begin_ticks > options.to; });
    writer.add_switches(p.index, switches);
    if (!p.moments.empty()) writer.add_moments(p.index, p.moments);
    p.inlined.keep(seen);
    writer.add_inlined(p.index, p.inlined);
    // Sources are kept of what was called, not of all that could have been.
    std::erase_if(p.functions, [&seen](const reader::Function& f) { return !seen[f.id]; });
  }
  summary.span_ns = clock.to_ns(span.length());
  if (!options.untraced.empty()) writer.add_untraced(options.untraced);
  if (options.states != nullptr) writer.add_states(*options.states);
  if (options.source) {
    const symbols::Sources sources = symbols::collect_sources(processes);
    for (const reader::SourceFile& file : sources.files) writer.add_source(file.path, file.text);
    summary.problems.insert(summary.problems.end(), sources.problems.begin(), sources.problems.end());
  }
  return summary;
}

}  // namespace karst::collect
