// SPDX-License-Identifier: MIT
// api/trace: what is small and does not change.
#include "engine/api/facts.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>

#include "analysis/program_facts.h"
#include "analysis/tracing_cost.h"
#include "answers/problems.h"
#include "engine/api/api.h"
#include "engine/api/flows.h"
#include "engine/api/locks.h"
#include "engine/api/memory.h"
#include "engine/api/rows.h"
#include "engine/api/states.h"
#include "engine/api/values.h"
#include "engine/protocol.h"
#include "engine/tiles/tracks.h"
#include "format/control.h"
#include "format/note_kinds.h"
#include "format/trace.h"
#include "reader/moments.h"

namespace karst::engine {
namespace {

using answers::field;
using answers::field_if_known;
using answers::list;
using answers::Relation;
using answers::row;
using answers::rows;
using answers::Type;
using answers::UseRow;
using answers::Value;
using answers::value_of;

const char* rate_source(std::uint32_t source) {
  switch (static_cast<format::RateSource>(source)) {
    case format::RateSource::kPerf:
      return "perf";
    case format::RateSource::kCpuid:
      return "cpuid";
    default:
      return "pairs";
  }
}

/// ns since the trace's first event; none for 0 ticks.
Value time_of(const TraceIndex& index, std::uint64_t ticks) {
  return ticks == 0 ? Value() : value_of(index.since_origin(ticks));
}

Value start_realtime(const TraceIndex& index) {
  const reader::Clock& clock = index.trace().clock();
  return clock.pairs.empty() ? Value() : value_of(analysis::realtime_ns(clock, index.origin()));
}

const Relation& clock_facts() {
  using Row = TraceIndex;
  static const Relation relation{"clock_facts",
                                 "clock_fact",
                                 "How times were measured",
                                 {field<Row>("ticks_per_second", Type::kCount, "its rate",
                                             [](const Row& r) { return r.trace().clock().ticks_per_second; }),
                                  field<Row>("rate_source", Type::kText, "who says so: pairs, perf or cpuid",
                                             [](const Row& r) { return rate_source(r.trace().clock().rate_source); }),
                                  field_if_known<Row>("start_realtime_ns", Type::kId,
                                                      "when the trace's first event was, since 1970", start_realtime),
                                  field<Row>("resolution_ns", Type::kDuration, "of a tick", [](const Row& r) {
                                    return 1e9 / static_cast<double>(r.trace().clock().ticks_per_second);
                                  })}};
  return relation;
}

const char* switch_reason(std::uint32_t reason) {
  if (reason == format::kSwitchesUnknown) return "unknown";
  switch (static_cast<format::SwitchReason>(reason)) {
    case format::SwitchReason::kTimer:
      return "timer";
    case format::SwitchReason::kBudget:
      return "budget";
    default:
      return "request";
  }
}

struct ProcessFact {
  const TraceIndex& index;
  const reader::Process& of;

  std::size_t place() const { return static_cast<std::size_t>(&of - index.trace().processes().data()); }
};

struct SwitchFact {
  const TraceIndex& index;
  const reader::Switch& of;
  std::uint64_t functions;           ///< how many it is of
  std::vector<std::uint32_t> named;  ///< some of them
};

// Some of a switch's functions as indices into `functions`: a name tells more than a number. Those that were never
// called have none. A tail call's exit has a number beside its function's, and is none of its own.
SwitchFact switch_fact(const ProcessFact& process, const reader::Switch& of) {
  constexpr std::size_t kMostNamed = 4;
  constexpr std::size_t kMostLooks = 4096;
  const TraceIndex& index = process.index;
  const std::vector<reader::Function>& known = process.of.functions;
  const auto& functions = index.functions().of_process(static_cast<std::uint32_t>(process.place()));
  std::uint64_t count = 0;
  SwitchFact fact{index, of, of.count, {}};
  const std::size_t looks = of.first == 0 ? 0 : std::min<std::size_t>(of.count, kMostLooks);
  for (std::size_t id = of.first; id < std::size_t{of.first} + looks && id < known.size(); ++id) {
    if (known[id].id == 0 || known[id].tail_exit) continue;
    ++count;
    if (fact.named.size() < kMostNamed && index.functions().functions()[functions[id]].occurs)
      fact.named.push_back(functions[id]);
  }
  if (of.count <= kMostLooks && count != 0) fact.functions = count;
  return fact;
}

const Relation& switch_facts() {
  using Row = SwitchFact;
  static const Relation relation{
      "switch_infos",
      "switch_info",
      "A row for each time that functions were switched off or on",
      {field<Row>("begin", Type::kTime, "when it began",
                  [](const Row& r) { return r.index.since_origin(r.of.begin_ticks); }),
       field_if_known<Row>("end", Type::kTime, "when it was done; null: it was under way when the trace was written",
                           [](const Row& r) { return time_of(r.index, r.of.end_ticks); }),
       field<Row>("all", Type::kFlag, "whether it is of all functions", [](const Row& r) { return r.of.first == 0; }),
       field<Row>("first", Type::kNumber, "the number that the first one has in its process",
                  [](const Row& r) { return r.of.first; }),
       field<Row>("ids", Type::kCount, "successive numbers from that one on, some of them spare",
                  [](const Row& r) { return r.of.count; }),
       field<Row>("functions", Type::kCount, "of which there is a function", [](const Row& r) { return r.functions; }),
       field<Row>("on", Type::kFlag, "whether it was on", [](const Row& r) { return r.of.on; }),
       field<Row>("reason", Type::kText, "request, timer, budget or unknown",
                  [](const Row& r) { return switch_reason(r.of.reason); }),
       list<Row>("named", Type::kNumber, "some of them, in TraceInfo.functions", [](const Row& r, const auto& use) {
         for (const std::uint32_t number : r.named) use(number);
       })}};
  return relation;
}

// The call that lasted from `begin` to `end`: what a moment kept was one. The outermost of several.
std::optional<std::uint32_t> call_between(const ThreadIndex& thread, std::uint64_t begin, std::uint64_t end) {
  const CallColumns& calls = thread.calls;
  const auto first = std::lower_bound(calls.begin.begin(), calls.begin.end(), begin);
  for (auto row = static_cast<std::uint32_t>(first - calls.begin.begin());
       row < calls.size() && calls.begin[row] == begin; ++row)
    if (calls.end(row) == end) return row;
  return std::nullopt;
}

struct MomentFact {
  const TraceIndex& index;
  const reader::Process& process;
  const reader::Moment& of;
  std::optional<std::uint32_t> thread = {};  ///< none: it is of all, or made no traced call
  std::optional<std::uint32_t> row = {};     ///< the call that it was
};

MomentFact moment_fact(const ProcessFact& process, const reader::Moment& of) {
  MomentFact fact{process.index, process.of, of};
  const auto& threads = process.index.threads();
  for (std::uint32_t i = 0; i < threads.size(); ++i) {
    const reader::Thread& thread = *threads[i].thread;
    if (thread.process == process.place() && thread.index == of.thread) fact.thread = i;
  }
  if (fact.thread) fact.row = call_between(threads[*fact.thread], of.begin_ticks, of.end_ticks);
  return fact;
}

answers::Field moment_time(std::string key, std::string sentence, std::uint64_t reader::Moment::*of) {
  return field<MomentFact>(std::move(key), Type::kTime, std::move(sentence),
                           [of](const MomentFact& r) { return r.index.since_origin(r.of.*of); });
}

const Relation& moment_facts() {
  using Row = MomentFact;
  static const Relation relation{
      "moment_infos",
      "moment_info",
      "A row for each time that was asked to be kept: a slow call, what led to a trigger, a snapshot",
      {field<Row>("number", Type::kNumber, "what --kept calls it", [](const Row& r) { return r.of.number; }),
       field<Row>("kind", Type::kText, "why it was kept",
                  [](const Row& r) { return reader::moment_kind_name(r.of.kind); }),
       moment_time("begin", "when it began", &reader::Moment::begin_ticks),
       moment_time("end", "when it ended", &reader::Moment::end_ticks),
       moment_time("kept_from", "from when on all was kept", &reader::Moment::kept_from),
       moment_time("kept_to", "until when", &reader::Moment::kept_to),
       field<Row>("thread", Type::kNumber, "in TraceInfo.threads; -1: of all, or of one without a traced call",
                  [](const Row& r) { return r.thread ? std::int64_t{*r.thread} : std::int64_t{-1}; }),
       field<Row>("what", Type::kText, "in words", [](const Row& r) -> const std::string& { return r.of.what; }),
       field<Row>("lost_events", Type::kCount, "records that were overwritten before they could be kept",
                  [](const Row& r) { return r.of.lost_events; }),
       field_if_known<Row>("index", Type::kNumber,
                           "the call that it was, in its thread; null: none, or not in the trace",
                           [](const Row& r) { return r.row; }),
       field_if_known<Row>("function", Type::kNumber, "of that call, in TraceInfo.functions", [](const Row& r) {
         return r.row ? value_of(r.index.function_of(r.index.threads()[*r.thread], *r.row)) : Value();
       })}};
  return relation;
}

// When the last call ends: those that were running at the end last until their thread's, after its last event.
std::uint64_t last_end(const TraceIndex& index) {
  std::uint64_t last = index.last_ticks();
  for (const ThreadIndex& thread : index.threads()) {
    if (thread.calls.size() == 0 || !thread.is_read()) continue;
    const std::span<const std::uint32_t> outermost = thread.lanes.rows(0);
    if (!outermost.empty()) last = std::max(last, thread.calls.end(outermost.back()));
  }
  return last;
}

const Relation& process_facts() {
  using Row = ProcessFact;
  static const Relation relation{
      "process_facts",
      "process_fact",
      "A row for each process",
      {field<Row>("pid", Type::kNumber, "its number", [](const Row& r) { return r.of.pid; }),
       field<Row>("parent_pid", Type::kNumber, "that of its parent", [](const Row& r) { return r.of.parent_pid; }),
       field<Row>("name", Type::kText, "what it is called",
                  [](const Row& r) -> const std::string& { return r.of.name; }),
       list<Row>("command_line", Type::kText, "its arguments",
                 [](const Row& r, const auto& use) {
                   for (const std::string& word : r.of.command_line) use(word);
                 }),
       list<Row>("app_info", Type::kText, "what it says of itself as a whole",
                 [](const Row& r, const auto& use) {
                   for (const std::string_view line : analysis::app_info(r.of)) use(line);
                 }),
       field<Row>("executable", Type::kText, "its file",
                  [](const Row& r) -> const std::string& { return r.of.executable; }),
       field<Row>("options", Type::kText, "of tracing",
                  [](const Row& r) -> const std::string& { return r.of.options; }),
       field_if_known<Row>("begin", Type::kTime, "when tracing began",
                           [](const Row& r) { return time_of(r.index, r.of.start_ticks); }),
       field_if_known<Row>("end", Type::kTime, "when it ended",
                           [](const Row& r) { return time_of(r.index, r.of.end_ticks); }),
       field_if_known<Row>("wait_status", Type::kNumber, "as wait() has it",
                           [](const Row& r) { return r.of.wait_status == -1 ? Value() : value_of(r.of.wait_status); }),
       field<Row>("call_cost", Type::kDuration, "what tracing a call costs; 0: not known",
                  [](const Row& r) { return analysis::call_cost_ns(r.of.cost, r.index.trace().clock()); }),
       field<Row>("ended", Type::kFlag, "whether its end was seen",
                  [](const Row& r) { return (r.of.flags & format::kProcessEnded) != 0; }),
       field<Row>("damaged", Type::kFlag, "whether its trace memory held what cannot be",
                  [](const Row& r) { return (r.of.flags & format::kProcessDamaged) != 0; }),
       field<Row>("overwritten_events", Type::kCount, "that gave way to newer ones",
                  [](const Row& r) { return r.of.overwritten_events; }),
       field<Row>("lost_events", Type::kCount, "that were never recorded",
                  [](const Row& r) { return r.of.lost_events; }),
       rows<Row>("switches", "when functions were off, the first ones", switch_facts(),
                 [](const Row& r, const UseRow& use) {
                   for (std::size_t i = 0; i < r.of.switches.size() && i < kMaxGaps; ++i) {
                     const SwitchFact fact = switch_fact(r, r.of.switches[i]);
                     use(&fact);
                   }
                 }),
       rows<Row>("moments", "what was asked to be kept", moment_facts(),
                 [](const Row& r, const UseRow& use) {
                   for (std::size_t i = 0; i < r.of.moments.size() && i < kMaxGaps; ++i) {
                     const MomentFact fact = moment_fact(r, r.of.moments[i]);
                     use(&fact);
                   }
                 }),
       field<Row>("switch_count", Type::kCount, "how many switches there are",
                  [](const Row& r) { return r.of.switches.size(); })}};
  return relation;
}

struct GapFact {
  const TraceIndex& index;
  const Gap& of;
};

const Relation& gap_facts() {
  using Row = GapFact;
  static const Relation relation{
      "gaps",
      "gap",
      "A row for each time of which events are missing",
      {field<Row>("begin", Type::kTime, "when it begins",
                  [](const Row& r) { return r.index.since_origin(r.of.begin); }),
       field<Row>("end", Type::kTime, "when it ends", [](const Row& r) { return r.index.since_origin(r.of.end); }),
       field<Row>("kind", Type::kText, "overwritten, or missing from the file",
                  [](const Row& r) { return r.of.overwritten ? "overwritten" : "missing"; }),
       field<Row>("blocks", Type::kCount, "of events", [](const Row& r) { return r.of.blocks; })}};
  return relation;
}

/// By format::NoteGroup.
struct NoteCounts {
  explicit NoteCounts(const ThreadIndex& thread) {
    for (std::uint32_t kind = 0; kind < thread.notes.size(); ++kind) {
      const format::KindOfNote& is = format::kind_of_note(kind);
      if (is.is_listed() || is.place == format::NotePlace::kLook)
        of[static_cast<std::size_t>(is.group)] += thread.notes[kind];
    }
  }
  bool any() const {
    return std::any_of(of.begin(), of.end(), [](std::uint64_t count) { return count != 0; });
  }
  std::array<std::uint64_t, format::kNoteGroups> of{};
};

const Relation& note_counts() {
  static const Relation relation = [] {
    Relation made{"note_counts", "note_count", "How many notes a thread has of each group", {}};
    for (std::size_t group = 0; group < format::kNoteGroups; ++group)
      made.fields.push_back(field<NoteCounts>(format::kNoteGroupWords[group], Type::kCount, "of this group",
                                              [group](const NoteCounts& r) { return r.of[group]; }));
    return made;
  }();
  return relation;
}

struct ThreadFact {
  const TraceIndex& index;
  const ThreadIndex& of;
  std::optional<std::string_view> group;

  const reader::Thread& thread() const { return *of.thread; }
};

answers::Field thread_number(std::string key, Type type, std::string sentence, std::uint64_t reader::Thread::*of) {
  return field<ThreadFact>(std::move(key), type, std::move(sentence),
                           [of](const ThreadFact& r) { return r.thread().*of; });
}

const Relation& thread_facts() {
  using Row = ThreadFact;
  static const Relation relation{
      "thread_facts",
      "thread_fact",
      "A row for each thread",
      {field<Row>("process", Type::kProcess, "whose it is",
                  [](const Row& r) { return answers::ProcessRef{r.thread().process}; }),
       field<Row>("tid", Type::kNumber, "its number", [](const Row& r) { return r.thread().tid; }),
       field<Row>("fiber", Type::kFlag, "whether it is a fiber's lane, with a number that is none of the kernel's",
                  [](const Row& r) { return r.thread().fiber; }),
       field<Row>("name", Type::kText, "what it is called",
                  [](const Row& r) -> const std::string& { return r.thread().name; }),
       field_if_known<Row>("group", Type::kText, "of threads that the program put together",
                           [](const Row& r) { return r.group; }),
       field_if_known<Row>("begin", Type::kTime, "when it joined",
                           [](const Row& r) {
                             const std::uint64_t joined = r.thread().joined_ticks;
                             return time_of(r.index, joined == 0 ? r.of.first_ticks : joined);
                           }),
       field_if_known<Row>(
           "end", Type::kTime, "when it exited",
           [](const Row& r) { return time_of(r.index, r.thread().exited ? r.thread().exited_ticks : 0); }),
       field_if_known<Row>("first", Type::kTime, "its first event",
                           [](const Row& r) { return time_of(r.index, r.of.first_ticks); }),
       field_if_known<Row>("last", Type::kTime, "its last event",
                           [](const Row& r) { return time_of(r.index, r.of.last_ticks); }),
       field<Row>("exited", Type::kFlag, "whether its end was seen", [](const Row& r) { return r.thread().exited; }),
       field<Row>("calls", Type::kCount, "how many it made", [](const Row& r) { return r.of.calls.size(); }),
       field<Row>("depths", Type::kCount, "levels that they have", [](const Row& r) { return r.of.levels(); }),
       field<Row>("events", Type::kCount, "that it recorded", [](const Row& r) { return r.of.events; }),
       thread_number("overwritten_events", Type::kCount, "that gave way to newer ones",
                     &reader::Thread::overwritten_events),
       thread_number("lost_events", Type::kCount, "that were never recorded", &reader::Thread::lost_events),
       field<Row>("out_of_order", Type::kCount, "events earlier than the one before them",
                  [](const Row& r) { return r.of.out_of_order; }),
       field<Row>("unmatched_exits", Type::kCount, "returns that fit no call",
                  [](const Row& r) { return r.of.unmatched_exits; }),
       field<Row>("missing_exits", Type::kCount, "calls whose caller returned while they had not",
                  [](const Row& r) { return r.of.missing_exits; }),
       field<Row>("beyond_depth", Type::kCount, "calls that no lane could take",
                  [](const Row& r) { return r.of.lanes.beyond_depth(); }),
       rows<Row>("gaps", "times of which events are missing, the first ones", gap_facts(),
                 [](const Row& r, const UseRow& use) {
                   for (const Gap& gap : r.of.gaps) {
                     const GapFact fact{r.index, gap};
                     use(&fact);
                   }
                 }),
       field<Row>("gap_count", Type::kCount, "how many there are", [](const Row& r) { return r.of.gap_count; }),
       field<Row>("states", Type::kFlag, "whether it is known what it did beside its calls",
                  [](const Row& r) { return r.of.states != nullptr; }),
       row<Row>("notes", "how many it has of each group", note_counts(),
                [](const Row& r, const UseRow& use) {
                  const NoteCounts counts(r.of);
                  if (counts.any()) use(&counts);
                }),
       field_if_known<Row>(
           "unread_from", Type::kTime, "while the trace is being read: from when on its calls are not there yet",
           [](const Row& r) { return r.of.is_read() ? Value() : value_of(r.index.since_origin(r.of.unread_from)); })}};
  return relation;
}

void each_thread(const TraceIndex& index, const UseRow& use) {
  std::map<std::uint32_t, std::map<std::uint32_t, std::string_view>> groups;  // by process
  for (const ThreadIndex& thread : index.threads()) {
    const reader::Thread& of = *thread.thread;
    auto known = groups.find(of.process);
    if (known == groups.end())
      known = groups.emplace(of.process, analysis::thread_groups(index.trace().processes()[of.process])).first;
    ThreadFact fact{index, thread, {}};
    if (const auto group = known->second.find(of.index); group != known->second.end() && !of.fiber)
      fact.group = group->second;
    use(&fact);
  }
}

const Relation& track_facts() {
  using Row = Track;
  static const Relation relation{
      "track_facts",
      "track_fact",
      "A row for each of what has lanes of its own in time: a thread, its states, a CPU",
      {field<Row>("id", Type::kNumber, "what questions call it", [](const Row& r) { return r.id; }),
       field<Row>("kind", Type::kText, "what it is of", [](const Row& r) { return r.kind->name(); }),
       field<Row>("name", Type::kText, "what it is called",
                  [](const Row& r) -> const std::string& { return r.facts.name; }),
       field<Row>("owner", Type::kNumber, "in TraceInfo.threads, of a CPU in TraceInfo.cpus",
                  [](const Row& r) { return r.facts.owner; }),
       field<Row>("lanes", Type::kCount, "how many it has", [](const Row& r) { return r.facts.lanes; })}};
  return relation;
}

// The texts of a list that are used, in the order of their first use.
struct UsedTexts {
  explicit UsedTexts(const std::vector<std::string>& texts) : all(texts), place(texts.size(), -1) {}
  std::int64_t of(std::int64_t number) {
    if (number < 0) return -1;
    std::int64_t& at = place[static_cast<std::size_t>(number)];
    if (at < 0) {
      at = static_cast<std::int64_t>(used.size());
      used.push_back(all[static_cast<std::size_t>(number)]);
    }
    return at;
  }
  const std::vector<std::string>& all;
  std::vector<std::int64_t> place;  // by number in `all`, -1: not used
  std::vector<std::string_view> used;
};

/// Functions that occur, with what they are of: a program may have a thousand times as many.
struct FunctionFacts {
  explicit FunctionFacts(const TraceIndex& index) : all(index.functions()), modules(all.modules()), files(all.files()) {
    for (std::uint32_t i = 0; i < all.functions().size(); ++i) {
      const FunctionInfo& of = all.functions()[i];
      if (!of.occurs) continue;
      shown.push_back(i);
      module.push_back(modules.of(of.module));
      file.push_back(files.of(of.file));
    }
    for (const reader::SourceFile& source : index.trace().sources()) sources.push_back(source.path);
    std::sort(sources.begin(), sources.end());
    find_colors(index);
  }
  /// The colour that the program gave a zone.
  void find_colors(const TraceIndex& index) {
    for (std::uint32_t process = 0; process < index.trace().processes().size(); ++process) {
      const std::vector<reader::Function>& known = index.trace().processes()[process].functions;
      const auto& numbers = all.of_process(process);
      for (std::size_t id = 0; id < known.size() && id < numbers.size(); ++id)
        if (const auto color = analysis::color_of(known[id]);
            color && all.has(process, static_cast<std::uint32_t>(id)) && all.functions()[numbers[id]].occurs)
          colors[numbers[id]] = *color;
    }
  }
  bool has_source(std::string_view path) const { return std::binary_search(sources.begin(), sources.end(), path); }

  const FunctionList& all;
  UsedTexts modules, files;
  std::vector<std::uint32_t> shown;               ///< numbers
  std::vector<std::int64_t> module, file;         ///< of these: places in what is used of the lists
  std::vector<std::string_view> sources;          ///< in order
  std::map<std::uint32_t, std::uint32_t> colors;  ///< by number
};

template <typename Get>
answers::Field each_function(std::string key, Type type, std::string sentence, Get get) {
  return list<FunctionFacts>(std::move(key), type, std::move(sentence), [get](const FunctionFacts& r, const auto& use) {
    for (const std::uint32_t number : r.shown) use(get(r.all.functions()[number]));
  });
}

answers::Field numbers_of_functions(std::string key, std::string sentence,
                                    std::vector<std::int64_t> FunctionFacts::*of) {
  return list<FunctionFacts>(std::move(key), Type::kNumber, std::move(sentence),
                             [of](const FunctionFacts& r, const auto& use) {
                               for (const std::int64_t number : r.*of) use(number);
                             });
}

const Relation& function_facts() {
  using Row = FunctionFacts;
  static const Relation relation{
      "function_facts",
      "function_fact",
      "Functions that occur: columns",
      {field<Row>("count", Type::kCount, "of all functions", [](const Row& r) { return r.all.functions().size(); }),
       list<Row>("number", Type::kNumber, "what calls name them by",
                 [](const Row& r, const auto& use) {
                   for (const std::uint32_t number : r.shown) use(number);
                 }),
       each_function("name", Type::kText, "what they are called",
                     [](const FunctionInfo& f) { return std::string_view(f.name); }),
       numbers_of_functions("module", "in `modules`; -1: not known", &Row::module),
       numbers_of_functions("file", "in `files`; -1: not known", &Row::file),
       each_function("line", Type::kNumber, "where they begin there", [](const FunctionInfo& f) { return f.line; }),
       each_function("calls", Type::kCount, "how many there are of them",
                     [](const FunctionInfo& f) { return f.calls; }),
       list<Row>("colored", Type::kNumber, "numbers of zones that the program gave a colour",
                 [](const Row& r, const auto& use) {
                   for (const auto& [number, color] : r.colors) use(number);
                 }),
       list<Row>("colors", Type::kNumber, "of those: 0xrrggbb", [](const Row& r, const auto& use) {
         for (const auto& [number, color] : r.colors) use(color);
       })}};
  return relation;
}

const Relation& sampled_functions_of_page() {
  using Row = reader::SampledFunction;
  static const Relation relation{
      "sampled_code",
      "sampled_code_fact",
      "A row for each function that samples saw",
      {field<Row>("name", Type::kText, "what it is called", [](const Row& r) -> const std::string& { return r.name; }),
       field<Row>("module", Type::kText, "that its code is in",
                  [](const Row& r) -> const std::string& { return r.module; }),
       field<Row>("file", Type::kText, "its source", [](const Row& r) -> const std::string& { return r.file; }),
       field<Row>("line", Type::kNumber, "where it begins there", [](const Row& r) { return r.line; })}};
  return relation;
}

const Relation& sample_facts() {
  using Row = reader::SampleLog;
  static const Relation relation{
      "sampled_infos",
      "sampled_info",
      "How code was sampled (`karst run --sample`)",
      {field<Row>("period", Type::kDuration, "CPU time that a sample stands for",
                  [](const Row& r) { return r.source.period_ns; }),
       field<Row>("samples", Type::kCount, "how many there are", [](const Row& r) { return r.samples.size(); }),
       field<Row>("lost", Type::kCount, "that the kernel left out", [](const Row& r) { return r.source.lost; }),
       rows<Row>("functions", "that they saw", sampled_functions_of_page(),
                 [](const Row& r, const UseRow& use) {
                   for (const reader::SampledFunction& function : r.functions) use(&function);
                 }),
       field<Row>("kernel", Type::kFlag, "whether time in the kernel is among them",
                  [](const Row& r) { return (r.source.flags & format::kSamplesKernel) != 0; })}};
  return relation;
}

/// A part of a trace that a page holds.
const Relation& range_facts() {
  using Row = TraceIndex;
  static const Relation relation{
      "range_facts",
      "range_fact",
      "The time that an exported page holds",
      {field<Row>("begin", Type::kTime, "when it begins",
                  [](const Row& r) { return r.since_origin(std::max(r.part()->range.begin, r.origin())); }),
       field<Row>("end", Type::kTime, "when it ends",
                  [](const Row& r) { return r.since_origin(std::min(r.part()->range.end, r.last_ticks())); })}};
  return relation;
}

const Relation& reading_facts() {
  using Row = TraceIndex;
  static const Relation relation{"reading_facts",
                                 "reading_fact",
                                 "How far a trace has been read",
                                 {field<Row>("threads_read", Type::kCount, "whose calls are there", [](const Row& r) {
                                   return std::count_if(r.threads().begin(), r.threads().end(),
                                                        [](const ThreadIndex& thread) { return thread.is_read(); });
                                 })}};
  return relation;
}

/// What trace_json() is told beside the trace.
struct TraceAsked {
  std::string_view version;
  std::size_t traces;
  bool keep, can_cut;
};

struct TraceFact {
  const TraceIndex& index;
  const TraceAsked& asked;
  FunctionFacts functions;

  const reader::Trace& trace() const { return index.trace(); }
};

answers::Field function_list(std::string key, std::string sentence,
                             std::vector<std::uint32_t> (*of)(const TraceIndex&)) {
  return list<TraceFact>(std::move(key), Type::kNumber, std::move(sentence), [of](const TraceFact& r, const auto& use) {
    for (const std::uint32_t number : of(r.index)) use(number);
  });
}

answers::Field used_texts(std::string key, std::string sentence, UsedTexts FunctionFacts::*of) {
  return list<TraceFact>(std::move(key), Type::kText, std::move(sentence), [of](const TraceFact& r, const auto& use) {
    for (const std::string_view text : (r.functions.*of).used) use(text);
  });
}

}  // namespace

const Relation& trace_facts() {
  using Row = TraceFact;
  static const Relation relation{
      "trace_facts",
      "trace_fact",
      "What is small and does not change",
      {field<Row>("version", Type::kText, "of karst", [](const Row& r) { return r.asked.version; }),
       field<Row>("name", Type::kText, "of the file",
                  [](const Row& r) { return std::filesystem::path(r.trace().name()).filename().string(); }),
       field<Row>("path", Type::kText, "of the file as it was given",
                  [](const Row& r) -> const std::string& { return r.trace().name(); }),
       field<Row>("file_size", Type::kBytes, "of the file", [](const Row& r) { return r.trace().file_size(); }),
       field<Row>("resolved", Type::kFlag, "whether it has names of functions",
                  [](const Row& r) { return r.trace().resolved(); }),
       field<Row>("complete", Type::kFlag, "whether it has its end", [](const Row& r) { return r.trace().complete(); }),
       field<Row>("keep", Type::kFlag, "whether the server stays when the page goes",
                  [](const Row& r) { return r.asked.keep; }),
       field<Row>("traces", Type::kCount, "that may be asked about", [](const Row& r) { return r.asked.traces; }),
       field<Row>("span", Type::kDuration, "to its last event",
                  [](const Row& r) { return r.index.since_origin(r.index.last_ticks()); }),
       field<Row>("extent", Type::kDuration,
                  "to the end of its last call; those that run at the end last until their thread's",
                  [](const Row& r) { return r.index.since_origin(last_end(r.index)); }),
       row<Row>("range", "the part of it that an exported page holds", range_facts(),
                [](const Row& r, const UseRow& use) {
                  if (r.index.part()) use(&r.index);
                }),
       field<Row>("calls", Type::kCount, "how many it has", [](const Row& r) { return r.index.calls(); }),
       field<Row>("events", Type::kCount, "how many it has", [](const Row& r) { return r.trace().event_count(); }),
       row<Row>("reading", "how far it has been read, while it is: most questions have to wait", reading_facts(),
                [](const Row& r, const UseRow& use) {
                  if (r.index.is_partial()) use(&r.index);
                }),
       row<Row>("clock", "how times were measured", clock_facts(),
                [](const Row& r, const UseRow& use) { use(&r.index); }),
       rows<Row>("problems", "what could not be used", answers::problems(),
                 [](const Row& r, const UseRow& use) {
                   for (const reader::Problem& problem : r.trace().problems()) use(&problem);
                 }),
       rows<Row>("processes", "its processes", process_facts(),
                 [](const Row& r, const UseRow& use) {
                   for (const reader::Process& process : r.trace().processes()) {
                     const ProcessFact fact{r.index, process};
                     use(&fact);
                   }
                 }),
       rows<Row>("threads", "its threads", thread_facts(),
                 [](const Row& r, const UseRow& use) { each_thread(r.index, use); }),
       rows<Row>("tracks", "what has lanes of its own in time", track_facts(),
                 [](const Row& r, const UseRow& use) {
                   for (const Track& track : tracks_of(r.index)) use(&track);
                 }),
       row<Row>("functions", "functions that occur", function_facts(),
                [](const Row& r, const UseRow& use) { use(&r.functions); }),
       used_texts("modules", "paths", &FunctionFacts::modules),
       used_texts("files", "paths", &FunctionFacts::files),
       list<Row>("has_source", Type::kFlag, "whether the trace has the text of each of `files`",
                 [](const Row& r, const auto& use) {
                   for (const std::string_view path : r.functions.files.used) use(r.functions.has_source(path));
                 }),
       function_list("values", "functions whose values are noted", functions_with_values),
       function_list("lock_waits", "functions that are waits for locks", functions_that_wait),
       field<Row>("memory", Type::kFlag, "whether it has records of memory",
                  [](const Row& r) { return Memory::has(r.index); }),
       field<Row>("flows", Type::kFlag, "whether its calls lead to one another",
                  [](const Row& r) { return has_flows(r.index); }),
       row<Row>("states", "who told when threads ran and waited", state_facts(),
                [](const Row& r, const UseRow& use) {
                  if (!r.trace().states().empty()) use(&r.index);
                }),
       rows<Row>("tasks", "threads as the kernel knows them, of the run or not", task_facts(),
                 [](const Row& r, const UseRow& use) { each_task(r.index, use); }),
       rows<Row>("cpus", "on which threads ran, once the trace is read", cpu_facts(),
                 [](const Row& r, const UseRow& use) { each_cpu(r.index, use); }),
       row<Row>("sampled", "how code was sampled, if it was", sample_facts(),
                [](const Row& r, const UseRow& use) {
                  if (!r.trace().samples().empty()) use(&r.trace().samples());
                }),
       list<Row>("features", Type::kText, "what the server can do: cut", [](const Row& r, const auto& use) {
         if (r.asked.can_cut) use("cut");
       })}};
  return relation;
}

std::string trace_json(const TraceIndex& index, std::string_view version, std::size_t traces, bool keep, bool can_cut) {
  const TraceAsked asked{version, traces, keep, can_cut};
  const TraceFact fact{index, asked, FunctionFacts(index)};
  Json json;
  json.open('{');
  write_row(json, index, trace_facts(), &fact);
  json.close('}');
  return json.take();
}

}  // namespace karst::engine
