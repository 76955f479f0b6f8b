// A trace is written in two parts. First all that the arenas hold, as a raw trace, which gets its name and is on the
// disk before anything else is done; then names, lines, inlined calls and sources, looked up in sandboxes. Whatever
// goes wrong in the second part, the first one stays, and `karst resolve` makes up for what is missing.
#include "collect/record/recording.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/clock_check.h"
#include "collect/record/call_counter.h"
#include "format/event.h"
#include "format/moments.h"
#include "format/note.h"
#include "format/trace.h"
#include "reader/clock_problems.h"
#include "symbols/sampled_names.h"
#include "symbols/sandbox.h"
#include "symbols/sources.h"
#include "symbols/static_locks.h"
#include "walk/words.h"

namespace karst::collect {
namespace {

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
  const std::uint32_t id = format::named_function(e);
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
    const std::uint32_t before = format::named_function(e);
    if (e == 0 || before > format::kMaxFunctionId || (before == 0 && format::event_is_mark(e))) return e;
    const auto to = to_.find(before);
    // What was in no table stays unknown.
    const std::uint32_t id = to != to_.end() ? to->second : format::kMaxFunctionId;
    return format::with_function(e, id);
  }
  bool knows(std::uint32_t id) const { return to_.contains(id); }
  /// The id that became this one.
  std::uint32_t before(std::uint32_t id) const { return old_[id - 1]; }

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> to_;
  std::vector<std::uint32_t> old_;
};

/// What makes readers know of it: an enter, or the setting of a place.
format::Event event_of(const OpenItem& item, std::uint64_t ticks) {
  return item.function == 0 ? format::make_place(item.place << 4, format::Mark::kSetPlace)
                            : format::make_event(ticks, false, item.function);
}

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

/// Functions of a forked child get ids of its own, in the order of those that they had.
void renumber(reader::Process& child, const reader::Process& ancestor, const RecordedProcess& recorded,
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
  // The ancestor of a forked child that has no number of its own before it: as its arena has it.
  for (const OpenItem& item : recorded.inherited.items())
    if (item.function != 0 && item.function < ancestor.functions.size() && ancestor.functions[item.function].id != 0)
      gather(ancestor.functions[item.function]);
  for (reader::Function& f : functions) gather(std::move(f));
  ids.settle();
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (reader::Function& f : all) {
    f.id = ids.of(f.id);
    child.functions.push_back(std::move(f));
  }
}

/// Functions of a forked child get the names that its ancestor's have. False when some are left without a name.
bool take_names(reader::Process& child, const reader::Process& ancestor, const Renumbering& ids) {
  bool all_named = true;
  for (std::size_t i = 1; i < child.functions.size(); ++i) {
    reader::Function& f = child.functions[i];
    const std::uint32_t from = ids.before(f.id);
    const reader::Function* same = from < ancestor.functions.size() ? &ancestor.functions[from] : nullptr;
    if (same != nullptr && same->id == from && same->address == f.address && same->module == f.module &&
        f.module < ancestor.modules.size() && f.module < child.modules.size() &&
        ancestor.modules[f.module].path == child.modules[f.module].path) {
      f = *same;
      f.id = static_cast<std::uint32_t>(i);
      for (reader::InlinedCall call : ancestor.inlined.of(from)) {
        call.function = f.id;
        call.name = child.inlined.text_number(ancestor.inlined.text(call.name));
        call.file = child.inlined.text_number(ancestor.inlined.text(call.file));
        call.call_file = child.inlined.text_number(ancestor.inlined.text(call.call_file));
        child.inlined.add(call);
      }
    }
    all_named = all_named && !f.name.empty();
  }
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
    child.first.push_back((*child.ids)(event_of(item, item.ticks)));
    child.first_ticks.push_back(item.ticks);
    calls += item.function != 0 ? 1 : 0;
  }
  for (reader::Thread& t : process.threads)
    if (t.index == child.heir) t.inherited = calls;
}

/// Blocks of the inherited events; returns by how much the thread's own sequence numbers go up.
std::uint64_t write_inherited(const Writing& w, std::uint32_t process, const RecordedProcess& recorded,
                              writing::TraceWriter& writer, RecordingSummary& summary) {
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
  const TailOwner tail_owner = [&history](std::uint32_t id) { return history.tail_owner(id); };
  RangeBegin range;
  std::vector<format::Event> buffer;
  for (std::size_t i = 0; i < blocks.size();) {
    OpenCalls open;
    const std::uint32_t thread = blocks[i].thread;
    std::uint64_t next = 0;
    for (; i < blocks.size() && blocks[i].thread == thread; ++i) {
      if (blocks[i].sequence != next) open.forget();
      next = blocks[i].sequence + 1;
      open.consume(history.read(blocks[i], buffer), blocks[i].ticks, from - 1, tail_owner);
    }
    open.leave_out_unsure(switches, from);
    std::vector<format::Event>& enters = range.enters[thread];
    for (const OpenItem& item : open.items()) enters.push_back(event_of(item, from));
  }
  return range;
}

/// Streams the blocks of one process into the file; marks the functions that occur.
void write_blocks(const RecordedProcess& recorded, const Writing& w, std::uint32_t process,
                  const RecordingOptions& options, writing::TraceWriter& writer, RecordingSummary& summary, Span& span,
                  std::vector<bool>& seen) {
  std::unordered_map<std::uint32_t, CallCounter> threads;
  const auto counter_of = [&](std::uint32_t thread) -> CallCounter& {
    const auto tail_owner = [&](std::uint32_t id) { return recorded.history.tail_owner(id); };
    return threads.try_emplace(thread, tail_owner, recorded.history.min_duration_ticks()).first->second;
  };
  std::uint64_t inherited = 0;
  std::vector<format::Event> buffer;
  std::vector<format::Event> renumbered;
  std::uint64_t shift = 0;
  if (w.inherits) {
    shift = write_inherited(w, process, recorded, writer, summary);
    CallCounter& heir = counter_of(w.heir);
    for (const OpenItem& item : recorded.inherited.items())
      heir.begin_with(std::array{event_of(item, item.ticks)}, item.ticks, recorded.inherited.complete());
    inherited = heir.calls();
    for (const format::Event e : w.first) mark_seen(e, seen);
  }
  const bool cut = options.from != 0;
  RangeBegin range = w.begin;
  const auto put_begin = [&](std::uint32_t thread, std::uint64_t sequence) {
    const auto at = range.enters.find(thread);
    if (at == range.enters.end() || at->second.empty()) return;
    writer.add_block(process, thread, sequence, options.from, at->second);
    counter_of(thread).begin_with(at->second, options.from, false);
    summary.events += at->second.size();
    for (const format::Event e : at->second) mark_seen(e, seen);
    at->second.clear();
    span.include(options.from);
  };
  for (const ArenaBlock& block : recorded.history.blocks()) {
    advance(options, 1);
    if (block.ticks > options.to) continue;
    auto events = recorded.history.read(block, buffer);
    const walk::Part part = walk::within(events.data(), events.size(), block.ticks, options.from, options.to);
    events = events.subspan(part.begin, part.count);
    if (events.empty()) continue;
    // Number 0 would say that the thread's history begins here.
    if (cut) put_begin(block.thread, block.sequence + 1);
    counter_of(block.thread).count(events, block.sequence, block.ticks);
    if (w.ids) {
      renumbered.assign(events.begin(), events.end());
      std::transform(renumbered.begin(), renumbered.end(), renumbered.begin(), *w.ids);
      events = renumbered;
    }
    const std::uint64_t sequence = block.sequence + (block.thread == w.heir ? shift : 0) + (cut ? 2 : 0);
    writer.add_block(process, block.thread, sequence, block.ticks, events);
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
  for (const auto& [thread, counter] : threads) {
    summary.calls += counter.calls();
    summary.notes += counter.notes();
  }
  summary.calls -= inherited;  // which are the parent's
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
      t.excerpt = at != begin.enters.end() && !at->second.empty();
      t.inherited =
          !t.excerpt
              ? 0
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

class Recording::Impl {
 public:
  Impl(const RecordingOptions& options, writing::TraceWriter& writer) : options_(options), writer_(writer) {}

  void add(RecordedProcess recorded);
  /// All but names: tables, blocks, switches, states.
  void write_events(std::vector<ClockPair> pairs);
  /// Looks all names up, then writes them; nothing if that was interrupted.
  bool write_names();
  const RecordingOptions& options() const { return options_; }
  writing::TraceWriter& writer() { return writer_; }
  RecordingSummary& summary() { return summary_; }

 private:
  void write_tables(const Clock& clock);
  void write_history(reader::Process& p, Span& span);
  void look_up(reader::Process& p);
  void add_sources();

  const RecordingOptions& options_;
  writing::TraceWriter& writer_;
  std::uint64_t tracing_ticks_ = 0;
  // What another machine's clock was like is not known here.
  bool counter_is_unsure_ = options_.clock_is_ours && !why_counter_is_unsure().empty();
  std::vector<RecordedProcess> recorded_;
  std::vector<reader::Process> processes_;
  std::vector<Writing> all_;
  std::vector<std::size_t> image_;       // of each process: the one before it, or itself, that was not forked
  std::vector<std::vector<bool>> seen_;  // of each process: functions that occur
  std::vector<ClockPair> readings_;
  RecordingSummary summary_;
};

void Recording::Impl::add(RecordedProcess recorded) {
  RecordedProcess& r = recorded_.emplace_back(std::move(recorded));
  if (r.forked) r.history.detach();
  reader::Process p = r.history.process();
  take_moments(r, options_);
  if (!options_.program.empty())
    for (reader::Module& m : p.modules)
      if (m.path == p.executable) m.path = options_.program.string();
  if (counter_is_unsure_) p.flags |= format::kProcessClockUnsure;
  p.index = static_cast<std::uint32_t>(processes_.size());
  p.wait_status = r.wait_status;
  p.parent = static_cast<std::uint32_t>(r.parent + 1);
  if (r.forked) p.flags |= format::kProcessForked;
  if (r.end_ticks != 0) {
    p.flags |= format::kProcessEnded;
    if (p.end_ticks == 0) p.end_ticks = r.end_ticks;
  }
  for (reader::Thread& t : p.threads) t.process = p.index;
  Writing& w = all_.emplace_back();
  fit_to_range(p, r.history, options_, w.begin);
  summary_.overwritten += p.overwritten_events;
  summary_.lost += p.lost_events;
  image_.push_back(r.forked && r.parent >= 0 ? image_[static_cast<std::size_t>(r.parent)] : p.index);
  if (r.forked) {
    static const reader::Process kNobody;
    w.ids.emplace();
    renumber(p, image_.back() < p.index ? processes_[image_.back()] : kNobody, r, *w.ids);
    prepare_inherited(w, p, r);
    for (reader::Moment& moment : r.moments)
      moment.function = w.ids->knows(moment.function) ? w.ids->of(moment.function) : 0;
  } else {
    readings_.push_back(r.history.start());
    // One between start and end shows a clock that was not steady, also where the rate comes from those two.
    if (const ArenaView* arena = r.history.arena(); arena != nullptr)
      if (const auto later = arena->later()) readings_.push_back(*later);
  }
  processes_.push_back(std::move(p));
}

void Recording::Impl::write_tables(const Clock& clock) {
  writer_.add_processes(processes_);
  writer_.add_clock(clock);
  std::uint32_t moments = options_.moment.empty() ? 0 : 1;
  for (const reader::Process& p : processes_) {
    writer_.add_modules(p.index, p.modules);
    writer_.add_functions(p.index, p.functions);
    writer_.add_threads(p.index, p.threads);
    for (reader::Moment& moment : recorded_[p.index].moments) moment.number = ++moments;
    writer_.add_moments(p.index, recorded_[p.index].moments);
    writer_.add_mode(p);
    writer_.add_cost(p);
  }
}

void Recording::Impl::write_history(reader::Process& p, Span& span) {
  std::vector<bool>& seen = seen_.emplace_back(p.functions.size());
  const std::uint64_t before = summary_.calls;
  write_blocks(recorded_[p.index], all_[p.index], p.index, options_, writer_, summary_, span, seen);
  // A call is two events; those cut at the edge of what is kept make this inexact by a few.
  const std::uint64_t calls = summary_.calls - before + p.overwritten_events / 2;
  tracing_ticks_ += calls * p.call_cost / format::kCallCostUnit;
  // Read again: the process may have gone on while its blocks were copied, and what it switched meanwhile concerns
  // them.
  std::vector<reader::Switch> switches = recorded_[p.index].history.switches();
  if (const auto& ids = all_[p.index].ids) {
    std::vector<reader::Switch> renumbered;
    for (const reader::Switch& s : switches)
      if (const auto known = (*ids)(s)) renumbered.push_back(*known);
    switches = std::move(renumbered);
  }
  std::erase_if(switches, [this](const reader::Switch& s) { return s.begin_ticks > options_.to; });
  writer_.add_switches(p.index, switches);
  if (!p.moments.empty()) writer_.add_moments(p.index, p.moments);
}

void Recording::Impl::write_events(std::vector<ClockPair> pairs) {
  // What a process wrote may say anything: nothing behind our own last reading is one of its clock.
  std::uint64_t last = options_.clock_is_ours && !pairs.empty() ? 0 : ~std::uint64_t{0};
  for (const ClockPair& pair : pairs) last = std::max(last, pair.ticks);
  std::copy_if(readings_.begin(), readings_.end(), std::back_inserter(pairs),
               [last](const ClockPair& reading) { return reading.ticks <= last; });
  summary_.processes = processes_.size();
  std::sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
  const Clock clock = make_clock(std::move(pairs), options_.clock_is_ours);
  for (std::string& problem : reader::clock_problems(clock)) summary_.problems.push_back({std::move(problem), 1});
  write_tables(clock);
  Span span;
  for (reader::Process& p : processes_) write_history(p, span);
  summary_.span_ns = clock.to_ns(span.length());
  summary_.tracing_ns = clock.to_ns(tracing_ticks_);
  if (!options_.untraced.empty()) writer_.add_untraced(options_.untraced);
  if (options_.states != nullptr) writer_.add_states(*options_.states);
  if (options_.samples != nullptr && !options_.names) {
    symbols::number_sampled(*options_.samples);
    writer_.add_samples(*options_.samples);
  }
}

void Recording::Impl::look_up(reader::Process& p) {
  const auto& ids = all_[p.index].ids;
  const std::size_t image = image_[p.index];
  const bool all_named = ids && image < p.index && take_names(p, processes_[image], *ids);
  const auto& own = recorded_[p.index].history.owner();
  const auto resolve = options_.resolve.as ? options_.resolve : options_.resolve.with(own);
  if (all_named) {
    symbols::name_static_locks(p, resolve);  // notes have names already
  } else {
    auto resolved = symbols::resolve(p, resolve);
    // Once for all processes of a program.
    for (auto& problem : resolved.problems) {
      auto& all = summary_.problems;
      const auto same =
          std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.message == problem.message; });
      if (same == all.end())
        all.push_back(std::move(problem));
      else
        same->count += problem.count;
    }
  }
  advance(options_, p.functions.size());
}

void Recording::Impl::add_sources() {
  // Those of processes with the same rights together: what one user may read another may not.
  std::set<std::string> there;
  std::vector<bool> done(processes_.size());
  const auto rights_of = [this](std::size_t i) {
    return options_.resolve.as ? options_.resolve.as : recorded_[i].history.owner();
  };
  for (std::size_t first = 0; first < processes_.size(); ++first) {
    if (done[first]) continue;
    std::vector<reader::Process> alike;
    for (std::size_t i = first; i < processes_.size(); ++i) {
      if (done[i] || rights_of(i) != rights_of(first)) continue;
      done[i] = true;
      // Sources are kept of what was called, not of all that could have been.
      std::erase_if(processes_[i].functions, [&](const reader::Function& f) { return !seen_[i][f.id]; });
      alike.push_back(std::move(processes_[i]));
    }
    const symbols::Sources sources = symbols::collect_sources(alike, {}, rights_of(first));
    for (const reader::SourceFile& file : sources.files)
      if (there.insert(file.path).second) writer_.add_source(file.path, file.text);
    summary_.problems.insert(summary_.problems.end(), sources.problems.begin(), sources.problems.end());
  }
}

bool Recording::Impl::write_names() {
  for (reader::Process& p : processes_) look_up(p);
  if (options_.samples != nullptr) {
    const auto as = options_.resolve.as || recorded_.empty() ? options_.resolve.as : recorded_[0].history.owner();
    symbols::name_sampled(*options_.samples, options_.resolve.with(as));
  }
  if (symbols::stop_lookups) return false;
  if (options_.samples != nullptr) writer_.add_samples(*options_.samples);
  for (reader::Process& p : processes_) {
    writer_.add_symbols(p.index, p.functions);
    p.inlined.keep(seen_[p.index]);
    writer_.add_inlined(p.index, p.inlined);
  }
  if (options_.source) add_sources();
  return true;
}

Recording::Recording(const RecordingOptions& options, writing::TraceWriter& writer)
    : impl_(std::make_unique<Impl>(options, writer)) {}
Recording::Recording(Recording&&) noexcept = default;
Recording::~Recording() = default;

void Recording::add(RecordedProcess process) { impl_->add(std::move(process)); }

Status Recording::drain(std::vector<ClockPair> pairs) {
  impl_->write_events(std::move(pairs));
  if (const Status kept = impl_->writer().keep_events(); !kept) return kept.error();
  if (impl_->options().on_kept) impl_->options().on_kept();
  return Unit{};
}

RecordingSummary Recording::finish() {
  RecordingSummary& summary = impl_->summary();
  writing::TraceWriter& writer = impl_->writer();
  if (!impl_->options().names) return std::move(summary);
  std::string missing;
  const std::size_t problems = summary.problems.size();
  if (!impl_->write_names()) {
    missing = "names, lines and sources are not in " + writer.path().string() +
              ", which has all events: interrupted; 'karst resolve' adds them";
  } else if (const Status named = writer.finish(); !named) {
    missing = named.error().message;
  }
  if (!missing.empty()) {
    summary.problems.resize(problems);  // of what is not in it
    summary.problems.push_back({std::move(missing), 1});
  }
  return std::move(summary);
}

Result<RecordingSummary> record(std::vector<RecordedProcess> processes, std::vector<ClockPair> pairs,
                                const RecordingOptions& options, writing::TraceWriter& writer) {
  Recording recording(options, writer);
  for (RecordedProcess& process : processes) recording.add(std::move(process));
  if (const Status drained = recording.drain(std::move(pairs)); !drained) return drained.error();
  return recording.finish();
}

}  // namespace karst::collect
