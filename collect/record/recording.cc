// SPDX-License-Identifier: MIT
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
#include "collect/record/inherited.h"
#include "collect/record/range.h"
#include "format/event.h"
#include "format/note.h"
#include "format/trace.h"
#include "reader/clock_problems.h"
#include "sandbox/sandbox.h"
#include "symbols/missing_names.h"
#include "symbols/sampled_names.h"
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

/// What a process needs on its way into the file.
struct Writing {
  std::optional<Renumbering> ids;  ///< of a forked child
  InheritedCalls inherited;
  RangeBegin begin;
  bool is_late = false;
};

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
  if (w.inherited.are_known) {
    shift = write_open_calls({w.inherited.first, w.inherited.first_ticks}, {process, w.inherited.heir},
                             recorded.inherited.complete(), writer);
    summary.events += w.inherited.first.size();
    CallCounter& heir = counter_of(w.inherited.heir);
    for (const OpenItem& item : recorded.inherited.items())
      heir.begin_with(std::array{event_of(item, item.ticks)}, item.ticks, recorded.inherited.complete());
    inherited = heir.calls();
    for (const format::Event e : w.inherited.first) mark_seen(e, seen);
  }
  const bool cut = options.from != 0;
  const std::uint64_t late = w.is_late ? 1 : 0;
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
    counter_of(block.thread).count(events, block.sequence + late, block.ticks, block.blocks);
    if (w.ids) {
      renumbered.assign(events.begin(), events.end());
      std::transform(renumbered.begin(), renumbered.end(), renumbered.begin(), *w.ids);
      events = renumbered;
    }
    const std::uint64_t sequence =
        block.sequence + late + (block.thread == w.inherited.heir ? shift : 0) + (cut ? 2 : 0);
    writer.add_block(process, block.thread, sequence, block.ticks, events, block.blocks);
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

/// What went into the file while the process ran.
void add_sums(const History& history, RecordingSummary& summary, Span& span) {
  const StreamSums sums = history.stream()->sums([&history](std::uint32_t id) { return history.tail_owner(id); },
                                                 history.min_duration_ticks());
  summary.threads += sums.threads;
  summary.calls += sums.calls;
  summary.notes += sums.notes;
  summary.events += sums.events;
  if (sums.events == 0) return;
  span.include(sums.first_ticks);
  span.include(sums.last_ticks);
}

/// By the ids that functions have in the file.
std::vector<bool> seen_of(const ProcessStream& stream, std::size_t functions) {
  std::vector<bool> seen = stream.ids() ? std::vector<bool>(functions, true) : stream.seen();
  seen.resize(functions);
  return seen;
}

}  // namespace

std::uint64_t work_of(const std::vector<RecordedProcess>& processes) {
  std::uint64_t work = 0;
  for (const RecordedProcess& p : processes)
    work += p.history.function_count() + (p.history.stream() == nullptr ? p.history.blocks().size() : 0);
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
  void write_functions(const reader::Process& p);
  void drop_uncalled();
  void drop_uncalled(reader::Process& p, std::vector<bool>& wanted) const;
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
  symbols::MissingNames missing_;
  std::vector<std::size_t> image_;       // of each process: the one before it, or itself, that was not forked
  std::vector<std::vector<bool>> seen_;  // of each process: functions that occur
  std::vector<ClockPair> readings_;
  RecordingSummary summary_;
};

void Recording::Impl::add(RecordedProcess recorded) {
  RecordedProcess& r = recorded_.emplace_back(std::move(recorded));
  r.history.finish_stream();
  if (r.forked) r.history.detach();
  reader::Process p = r.history.process();
  add_moments(r.moments, r.history, options_.from, options_.to);
  if (!options_.program.empty())
    for (reader::Module& m : p.modules)
      if (m.path == p.executable) m.path = options_.program.string();
  for (reader::Module& m : p.modules) m.built_by_ns = r.history.start().realtime_ns;
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
  w.is_late = (p.flags & format::kProcessLate) != 0;
  w.begin = fit_to_range(p, r.history, options_.from, options_.to);
  if (!options_.moment.empty()) p.moments.push_back(moment_of(p, options_.from, options_.to, options_.moment));
  summary_.overwritten += p.overwritten_events;
  summary_.lost += p.lost_events;
  image_.push_back(r.forked && r.parent >= 0 ? image_[static_cast<std::size_t>(r.parent)] : p.index);
  if (r.forked) {
    static const reader::Process kNobody;
    if (const ProcessStream* const stream = r.history.stream(); stream != nullptr && stream->ids()) {
      w.ids = stream->ids();
      renumber(p, *w.ids);
    } else {
      w.ids.emplace();
      renumber(p, image_.back() < p.index ? processes_[image_.back()] : kNobody, r.inherited, *w.ids);
      w.inherited = inherited_calls(p, r.history, r.inherited, *w.ids);
    }
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
    writer_.add_threads(p.index, p.threads);
    for (reader::Moment& moment : recorded_[p.index].moments) moment.number = ++moments;
    writer_.add_moments(p.index, recorded_[p.index].moments);
    summary_.has_moments = summary_.has_moments || !recorded_[p.index].moments.empty();
    writer_.add_mode(p);
    writer_.add_cost(p);
  }
}

void Recording::Impl::write_history(reader::Process& p, Span& span) {
  std::vector<bool>& seen = seen_.emplace_back(p.functions.size());
  const std::uint64_t before = summary_.calls;
  if (const ProcessStream* const stream = recorded_[p.index].history.stream(); stream != nullptr) {
    add_sums(recorded_[p.index].history, summary_, span);
    seen = seen_of(*stream, p.functions.size());
  } else {
    write_blocks(recorded_[p.index], all_[p.index], p.index, options_, writer_, summary_, span, seen);
  }
  // A call is two events; those cut at the edge of what is kept make this inexact by a few.
  const std::uint64_t calls = summary_.calls - before + p.overwritten_events / 2;
  tracing_ticks_ += calls * p.cost.usual() / format::kCallCostUnit + recorded_[p.index].history.reserving_ticks();
  // Read again: the process may have gone on while its blocks were copied, and what it switched meanwhile concerns
  // them.
  std::vector<reader::Switch> switches = recorded_[p.index].history.switches();
  if (const auto& ids = all_[p.index].ids) switches = renumber(switches, *ids);
  std::erase_if(switches, [this](const reader::Switch& s) { return s.begin_ticks > options_.to; });
  summary_.calls_are_about = summary_.calls_are_about || !switches.empty();
  writer_.add_switches(p.index, switches);
  p.switches = std::move(switches);
  if (!p.moments.empty()) writer_.add_moments(p.index, p.moments);
  summary_.has_moments = summary_.has_moments || !p.moments.empty();
}

// A program that was not built for tracing has ten times the functions that it calls, and each would want a name, a
// line and what was inlined into it. Of what was patched there is in the trace what was called or something else tells
// of.
void Recording::Impl::drop_uncalled() {
  if (options_.uncalled) return;
  std::vector<std::vector<bool>> wanted = seen_;
  // Forked children take their names from the process that they came from.
  for (const reader::Process& child : processes_) {
    if (!all_[child.index].ids || image_[child.index] == child.index) continue;
    std::vector<bool>& of_image = wanted[image_[child.index]];
    for (const reader::Function& f : child.functions)
      if (const std::uint32_t id = f.id != 0 ? all_[child.index].ids->before(f.id) : 0; id < of_image.size())
        of_image[id] = true;
  }
  for (reader::Process& p : processes_)
    if (std::any_of(p.modules.begin(), p.modules.end(), [](const auto& m) { return m.patched; }) &&
        recorded_[p.index].history.counts().empty())
      drop_uncalled(p, wanted[p.index]);
}

void Recording::Impl::drop_uncalled(reader::Process& p, std::vector<bool>& wanted) const {
  const auto want_functions_of = [&wanted](const std::vector<reader::Moment>& moments) {
    for (const reader::Moment& moment : moments)
      if (moment.function < wanted.size()) wanted[moment.function] = true;
  };
  want_functions_of(p.moments);
  want_functions_of(recorded_[p.index].moments);
  // Each switch is looked at once, however many functions it says that it is of.
  std::vector<std::int64_t> begins(wanted.size() + 1);
  for (const reader::Switch& s : p.switches) {
    if (s.first == 0 || s.first >= wanted.size()) continue;
    ++begins[s.first];
    --begins[std::min<std::uint64_t>(std::uint64_t{s.first} + s.count, wanted.size())];
  }
  std::int64_t open = 0;
  for (std::size_t id = 0; id < wanted.size(); ++id)
    if ((open += begins[id]) != 0) wanted[id] = true;
  // A tail call's exit has an id of its own, which means nothing without its function's.
  std::vector<std::uint64_t> tail_exits;
  for (const reader::Function& f : p.functions)
    if (f.tail_exit && f.id < wanted.size() && wanted[f.id]) tail_exits.push_back(f.address);
  std::sort(tail_exits.begin(), tail_exits.end());
  const auto has_tail_exit = [&](std::uint64_t at) {
    return std::binary_search(tail_exits.begin(), tail_exits.end(), at);
  };
  for (reader::Function& f : p.functions) {
    const bool is_plain = f.module < p.modules.size() && p.modules[f.module].patched;
    const bool tells = f.note || f.filtered || f.culled || f.always || !f.values.empty();
    if (!is_plain || tells || (f.id < wanted.size() && wanted[f.id]) || has_tail_exit(f.address)) continue;
    f = {};
  }
}

void Recording::Impl::write_functions(const reader::Process& p) {
  const ProcessStream* const stream = recorded_[p.index].history.stream();
  if (stream == nullptr) return writer_.add_functions(p.index, p.functions);
  std::vector<reader::Function> others = p.functions;
  std::erase_if(others, [stream](const reader::Function& f) { return stream->has_function(f.id); });
  writer_.add_functions(p.index, others);
}

void Recording::Impl::write_events(std::vector<ClockPair> pairs) {
  if (!options_.raw_events) writer_.pack_events();
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
  drop_uncalled();
  for (const reader::Process& p : processes_) write_functions(p);
  summary_.span_ns = clock.to_ns(span.length());
  summary_.tracing_ns = clock.to_ns(tracing_ticks_);
  if (!options_.untraced.empty()) writer_.add_untraced(options_.untraced);
  if (options_.states != nullptr) writer_.add_states(*options_.states);
  if (options_.usage != nullptr) writer_.add_usage(*options_.usage);
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
    missing_.add(symbols::resolve(p, resolve).problems);
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
  for (reader::Problem& problem : missing_.folded()) summary_.problems.push_back(std::move(problem));
  if (options_.samples != nullptr) {
    const auto as = options_.resolve.as || recorded_.empty() ? options_.resolve.as : recorded_[0].history.owner();
    const std::uint64_t begin = recorded_.empty() ? 0 : recorded_[0].history.start().realtime_ns;
    symbols::name_sampled(*options_.samples, options_.resolve.with(as), begin);
  }
  if (sandbox::stop_lookups) return false;
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
