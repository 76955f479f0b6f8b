// SPDX-License-Identifier: MIT
#include "answers/traces.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <map>

#include "analysis/program_facts.h"
#include "analysis/selection.h"
#include "analysis/untraced.h"
#include "answers/problems.h"
#include "answers/usage.h"
#include "base/hex.h"
#include "format/moments.h"
#include "reader/moments.h"

namespace karst::answers {
namespace {

struct ProcessRow {
  const TraceRow& in;
  const reader::Process& of;
  const std::vector<ThreadCounts>& threads;

  bool is(format::ProcessFlag flag) const { return (of.flags & flag) != 0; }
  std::uint64_t ns(std::uint64_t ticks) const { return in.trace.clock().to_ns(ticks); }
};

struct ThreadOfProcess {
  const reader::Thread& of;
  const ThreadCounts& counts;
  std::string_view group;
};

struct ModuleOfProcess {
  const reader::Module& of;
  analysis::FunctionCounts functions;
};

struct SwitchOfProcess {
  const reader::Switch& of;
  const Times& times;
};

struct MomentOfTrace {
  const TraceRow& in;
  const reader::Process& process;
  const reader::Moment& of;

  bool has(format::MomentFlag flag) const { return (of.flags & flag) != 0; }
};

/// Its rows are a TraceRow.
template <typename Get>
Field of_trace(std::string key, Type type, std::string sentence, Get get) {
  return field<TraceRow>(std::move(key), type, std::move(sentence), get);
}

Field count_of_trace(std::string key, std::string sentence, std::uint64_t TraceCounts::*of) {
  return of_trace(std::move(key), Type::kCount, std::move(sentence), [of](const TraceRow& r) { return r.counts.*of; });
}

const Relation& threads_of_process() {
  using Row = ThreadOfProcess;
  static const Relation relation{
      "threads",
      "thread",
      "A row for each thread of a process",
      {field<Row>("tid", Type::kNumber, "its number", [](const Row& r) { return r.of.tid; }),
       field<Row>("calls", Type::kCount, "how many it made", [](const Row& r) { return r.counts.calls; }),
       field<Row>("fiber", Type::kFlag, "whether it is a fiber's lane, with a number that is none of the kernel's",
                  [](const Row& r) { return r.of.fiber; }),
       field<Row>("group", Type::kText, "the one that the program put it into", [](const Row& r) { return r.group; }),
       field<Row>("inherited_calls", Type::kCount, "calls of the parent's that it was forked in",
                  [](const Row& r) { return r.of.inherited; }),
       field<Row>("open_calls", Type::kCount, "calls with a begin or an end that is not known",
                  [](const Row& r) { return r.counts.open_calls; }),
       field<Row>("events", Type::kCount, "that it recorded", [](const Row& r) { return r.counts.events; }),
       field<Row>("span", Type::kDuration, "from its first event to its last",
                  [](const Row& r) { return r.counts.span_ns; }),
       field<Row>("overwritten_events", Type::kCount, "that gave way to newer ones",
                  [](const Row& r) { return r.of.overwritten_events; }),
       field<Row>("lost_events", Type::kCount, "that were never recorded",
                  [](const Row& r) { return r.of.lost_events; }),
       field<Row>("exited", Type::kFlag, "whether its end was seen", [](const Row& r) { return r.of.exited; }),
       field<Row>("name", Type::kText, "what it is called",
                  [](const Row& r) -> const std::string& { return r.of.name; })}};
  return relation;
}

const Relation& modules_of_process() {
  using Row = ModuleOfProcess;
  static const Relation relation{
      "modules",
      "module",
      "A row for each executable and library of a process",
      {field<Row>("path", Type::kText, "its file", [](const Row& r) -> const std::string& { return r.of.path; }),
       field<Row>("build_id", Type::kText, "in hexadecimal digits; empty: it has none",
                  [](const Row& r) { return hex(r.of.build_id); }),
       field<Row>("load_address", Type::kText, "where it was loaded",
                  [](const Row& r) { return fmt::format("{:#x}", r.of.bias); }),
       field<Row>("functions", Type::kCount, "that it has sleds of", [](const Row& r) { return r.functions.all; }),
       field<Row>("unnamed", Type::kCount, "of them those without a name",
                  [](const Row& r) { return r.functions.unnamed; }),
       field<Row>("without_line", Type::kCount, "of them those without a place in the source",
                  [](const Row& r) { return r.functions.without_line; }),
       field<Row>("patched", Type::kFlag, "whether it was not built for tracing",
                  [](const Row& r) { return r.of.patched; }),
       field<Row>("left_alone", Type::kCount, "functions of such a one that could not be patched",
                  [](const Row& r) { return r.of.left_alone; })}};
  return relation;
}

const Relation& switches_of_process() {
  using Row = SwitchOfProcess;
  static const Relation relation{
      "switches",
      "switch",
      "A row for each time that functions were switched off or on",
      {field<Row>("on", Type::kFlag, "whether it was on", [](const Row& r) { return r.of.on; }),
       field<Row>("begin", Type::kTime, "when it began",
                  [](const Row& r) { return r.times.since_start(r.of.begin_ticks); }),
       field_if_known<Row>(
           "end", Type::kTime, "when it was done",
           [](const Row& r) { return r.of.end_ticks == 0 ? Value() : value_of(r.times.since_start(r.of.end_ticks)); }),
       field<Row>("first_function", Type::kNumber, "the id of the first one; 0: of all",
                  [](const Row& r) { return r.of.first; }),
       field<Row>("functions", Type::kCount, "how many ids from that one on", [](const Row& r) { return r.of.count; }),
       field<Row>("reason", Type::kText, "why it was",
                  [](const Row& r) { return analysis::reason_text(r.of.reason); })}};
  return relation;
}

const Relation& processes_of_trace() {
  using Row = ProcessRow;
  static const Relation relation{
      "processes",
      "process",
      "A row for each process",
      {field<Row>("index", Type::kNumber, "its number in the trace", [](const Row& r) { return r.of.index; }),
       field_if_known<Row>("parent", Type::kNumber, "the number of the one that forked it, or became it",
                           [](const Row& r) { return r.of.parent == 0 ? Value() : value_of(r.of.parent - 1); }),
       field<Row>("forked", Type::kFlag, "whether it was forked",
                  [](const Row& r) { return r.is(format::kProcessForked); }),
       field<Row>("pid", Type::kNumber, "its number", [](const Row& r) { return r.of.pid; }),
       field<Row>("parent_pid", Type::kNumber, "that of its parent", [](const Row& r) { return r.of.parent_pid; }),
       field<Row>("name", Type::kText, "what it is called",
                  [](const Row& r) -> const std::string& { return r.of.name; }),
       field<Row>("executable", Type::kText, "its file",
                  [](const Row& r) -> const std::string& { return r.of.executable; }),
       field<Row>("options", Type::kText, "of tracing",
                  [](const Row& r) -> const std::string& { return r.of.options; }),
       list<Row>("command_line", Type::kText, "its arguments",
                 [](const Row& r, const auto& use) {
                   for (const std::string& argument : r.of.command_line) use(argument);
                 }),
       list<Row>("app_info", Type::kText, "what it says of itself",
                 [](const Row& r, const auto& use) {
                   for (const std::string_view line : analysis::app_info(r.of)) use(line);
                 }),
       field<Row>("ended", Type::kFlag, "whether its end was seen",
                  [](const Row& r) { return r.is(format::kProcessEnded); }),
       field_if_known<Row>("exit_status", Type::kNumber, "of one that exited",
                           [](const Row& r) {
                             const int status = r.of.wait_status;
                             return status != -1 && WIFEXITED(status) ? value_of(WEXITSTATUS(status)) : Value();
                           }),
       field_if_known<Row>("signal", Type::kNumber, "that killed it",
                           [](const Row& r) {
                             const int status = r.of.wait_status;
                             return status != -1 && WIFSIGNALED(status) ? value_of(WTERMSIG(status)) : Value();
                           }),
       field<Row>(
           "started_realtime", Type::kTime, "when tracing began, since 1970; 0: not known",
           [](const Row& r) { return analysis::realtime_ns(r.in.trace.clock(), tracing_begin(r.in.trace, r.of)); }),
       field<Row>("damaged", Type::kFlag, "whether its trace memory held what cannot be",
                  [](const Row& r) { return r.is(format::kProcessDamaged); }),
       rows<Row>("switches", "when functions were off", switches_of_process(),
                 [](const Row& r, const UseRow& use) {
                   for (const reader::Switch& of : r.of.switches) {
                     const SwitchOfProcess row{of, r.in.times};
                     use(&row);
                   }
                 }),
       field<Row>("overwritten_events", Type::kCount, "that gave way to newer ones",
                  [](const Row& r) { return r.of.overwritten_events; }),
       field<Row>("lost_events", Type::kCount, "that were never recorded",
                  [](const Row& r) { return r.of.lost_events; }),
       field<Row>("min_duration", Type::kDuration, "shorter calls that contain nothing kept are left out",
                  [](const Row& r) { return r.ns(r.of.min_duration_ticks); }),
       field<Row>("clock", Type::kText, "what stamped events: tsc, or a thread's clock",
                  [](const Row& r) { return r.of.clock_period_ticks != 0 ? "thread" : "tsc"; }),
       field<Row>("clock_period", Type::kDuration, "of that thread's",
                  [](const Row& r) { return r.ns(r.of.clock_period_ticks); }),
       rows<Row>("threads", "its threads", threads_of_process(),
                 [](const Row& r, const UseRow& use) {
                   const std::map<std::uint32_t, std::string_view> groups = analysis::thread_groups(r.of);
                   for (std::size_t i = 0; i < r.of.threads.size(); ++i) {
                     const reader::Thread& thread = r.of.threads[i];
                     const auto group = thread.fiber ? groups.end() : groups.find(thread.index);
                     const ThreadOfProcess row{thread, r.threads[i],
                                               group == groups.end() ? std::string_view() : group->second};
                     use(&row);
                   }
                 }),
       rows<Row>("modules", "its executable and libraries", modules_of_process(),
                 [](const Row& r, const UseRow& use) {
                   for (const reader::Module& module : r.of.modules) {
                     const ModuleOfProcess row{module, analysis::functions_of(r.of, module)};
                     use(&row);
                   }
                 }),
       field<Row>("clock_longest", Type::kDuration, "the longest time for which a thread's clock stood still",
                  [](const Row& r) { return r.ns(r.of.clock_longest_ticks); })}};
  return relation;
}

std::string hex_number(std::uint64_t number) { return fmt::format("{:#x}", number); }

/// A time of a moment's.
Field time_of_moment(std::string key, std::string sentence, std::uint64_t reader::Moment::*of) {
  return field<MomentOfTrace>(std::move(key), Type::kTime, std::move(sentence),
                              [of](const MomentOfTrace& r) { return r.in.times.since_start(r.of.*of); });
}

const Relation& moments_of_trace() {
  using Row = MomentOfTrace;
  static const Relation relation{
      "moments",
      "moment",
      "A row for each time that was asked to be kept",
      {field<Row>("number", Type::kNumber, "what --kept calls it", [](const Row& r) { return r.of.number; }),
       field<Row>("kind", Type::kText, "why it was kept",
                  [](const Row& r) { return reader::moment_kind_name(r.of.kind); }),
       field<Row>("what", Type::kText, "in words", [](const Row& r) -> const std::string& { return r.of.what; }),
       field_if_known<Row>("function", Type::kText, "that it was a call of",
                           [](const Row& r) {
                             return r.of.function == 0 ? Value()
                                                       : value_of(r.in.trace.function(r.process, r.of.function).name);
                           }),
       field<Row>("pid", Type::kNumber, "the process's number", [](const Row& r) { return r.process.pid; }),
       field<Row>("tid", Type::kNumber, "the thread's number; 0: of all", [](const Row& r) { return r.of.tid; }),
       time_of_moment("begin", "when it began", &reader::Moment::begin_ticks),
       time_of_moment("end", "when it ended", &reader::Moment::end_ticks),
       time_of_moment("kept_from", "from when on all was to be kept", &reader::Moment::kept_from),
       time_of_moment("kept_to", "until when", &reader::Moment::kept_to),
       time_of_moment("whole_from", "from when on all is there", &reader::Moment::whole_from),
       field<Row>("lost_events", Type::kCount, "that are missing", [](const Row& r) { return r.of.lost_events; }),
       field<Row>("gave_up", Type::kFlag, "whether memory was too small for it",
                  [](const Row& r) { return r.has(format::kMomentGaveUp); }),
       list<Row>("arguments", Type::kText, "registers at its begin, where they were noted: rdi, rsi, rdx, rcx, r8, r9",
                 [](const Row& r, const auto& use) {
                   if (!r.has(format::kMomentHasArguments)) return;
                   for (const std::uint64_t argument : r.of.arguments) use(hex_number(argument));
                 }),
       field<Row>("address", Type::kText, "where it began", [](const Row& r) { return hex_number(r.of.address); })}};
  return relation;
}

const Relation& clock_of_trace() {
  static const Relation relation{
      "clocks",
      "clock",
      "A row for each clock that times were measured with",
      {of_trace("ticks_per_second", Type::kCount, "its rate",
                [](const TraceRow& r) { return r.trace.clock().ticks_per_second; }),
       of_trace("rate_source", Type::kText, "who says so",
                [](const TraceRow& r) { return rate_source_words(r.trace.clock().rate_source); }),
       of_trace("pairs", Type::kCount, "readings of the kernel's clocks",
                [](const TraceRow& r) { return r.trace.clock().pairs.size(); }),
       of_trace("first_event_realtime", Type::kTime, "since 1970; 0: not known", [](const TraceRow& r) {
         return analysis::realtime_ns(r.trace.clock(), analysis::first_ticks(r.trace));
       })}};
  return relation;
}

std::string_view backend_word(format::StateBackend backend) {
  switch (backend) {
    case format::StateBackend::kPerf:
      return "perf";
    case format::StateBackend::kFtrace:
      return "ftrace";
    case format::StateBackend::kNone:
      break;
  }
  return "none";
}

struct StatesOfTrace {
  const reader::States& of;
  const reader::StateSource& source;
  const reader::Clock& clock;

  bool has(format::StatesFlag flag) const { return (source.flags & flag) != 0; }
  std::uint64_t ns(std::uint64_t ticks) const { return clock.to_ns(ticks); }
};

template <typename Get>
Field of_states(std::string key, Type type, std::string sentence, Get get) {
  return field_if_known<StatesOfTrace>(std::move(key), type, std::move(sentence), get);
}

Field flag_of_states(std::string key, std::string sentence, format::StatesFlag flag) {
  return field<StatesOfTrace>(std::move(key), Type::kFlag, std::move(sentence),
                              [flag](const StatesOfTrace& s) { return s.has(flag); });
}

const Relation& states_of_trace() {
  using Row = StatesOfTrace;
  static const Relation relation{
      "states",
      "states",
      "A row for each record of when threads ran and waited",
      {field<Row>("backend", Type::kText, "who told of it: ftrace, perf or none",
                  [](const Row& s) { return backend_word(s.source.backend); }),
       field<Row>("records", Type::kCount, "how many there are",
                  [](const Row& s) { return s.of.log().records.size(); }),
       field<Row>("threads", Type::kCount, "of which there are states",
                  [](const Row& s) { return s.of.threads().size(); }),
       field<Row>("cpus", Type::kCount, "on which they ran", [](const Row& s) { return s.source.cpus; }),
       field<Row>("span", Type::kDuration, "for how long",
                  [](const Row& s) { return s.ns(s.source.end_ticks - s.source.begin_ticks); }),
       field<Row>("clock_error", Type::kDuration, "how far times may be off from the calls'",
                  [](const Row& s) { return s.source.clock_error_ns; }),
       flag_of_states("wakers", "whether it says who woke whom", format::kStatesWakes),
       flag_of_states("own_wakers", "whether it says so of the program's own threads", format::kStatesOwnWakes),
       flag_of_states("other_processes", "whether it says what else ran", format::kStatesOthers),
       field_if_known<Row>("wakers_from", Type::kDuration, "since when it says so, after its begin",
                           [](const Row& s) {
                             const std::uint64_t from = s.of.log().wakes_from();
                             return s.has(format::kStatesWakes) && from > s.source.begin_ticks
                                        ? value_of(s.ns(from - s.source.begin_ticks))
                                        : Value();
                           }),
       flag_of_states("system_calls", "whether it says in which a thread waited", format::kStatesSyscalls),
       field<Row>("lost_events", Type::kCount, "that the kernel left out",
                  [](const Row& s) { return s.source.lost_events; }),
       field<Row>("gaps", Type::kCount, "stretches of a CPU without records",
                  [](const Row& s) { return s.of.gaps().size(); }),
       field<Row>("overwritten_events", Type::kCount, "that gave way to newer ones",
                  [](const Row& s) { return s.source.overwritten_events; }),
       field<Row>("migrations", Type::kCount, "of threads between CPUs",
                  [](const Row& s) { return s.source.migrations; }),
       field_if_known<Row>(
           "page_faults", Type::kCount, "in user code",
           [](const Row& s) { return s.has(format::kStatesFaults) ? value_of(s.source.page_faults) : Value(); }),
       field<Row>("left_out", Type::kCount, "places in which the kernel left out records",
                  [](const Row& s) { return s.of.doubts().left_out; }),
       field<Row>("unknown_stretches", Type::kCount, "of threads, in which their state is not known",
                  [](const Row& s) { return s.of.doubts().stretches; }),
       field<Row>("unknown", Type::kDuration, "of these together",
                  [](const Row& s) { return s.ns(s.of.doubts().ticks); }),
       field<Row>("longest_unknown", Type::kDuration, "the longest of them",
                  [](const Row& s) { return s.ns(s.of.doubts().longest); }),
       field<Row>("note", Type::kText, "why there are none, or what would be needed for more", [](const Row& s) {
         return s.source.backend == format::StateBackend::kNone ? why_no_states(s.source) : s.source.note;
       })}};
  return relation;
}

const Relation& samples_of_trace() {
  using Row = reader::SampleLog;
  static const Relation relation{
      "samples",
      "samples",
      "A row for each record of samples of code below traced calls",
      {field<Row>("samples", Type::kCount, "how many there are", [](const Row& log) { return log.samples.size(); }),
       field<Row>("period", Type::kDuration, "CPU time that each stands for",
                  [](const Row& log) { return log.source.period_ns; }),
       field<Row>("waits", Type::kCount, "times off a CPU with a stack",
                  [](const Row& log) { return log.waits.size(); }),
       field<Row>("waits_left_out", Type::kCount, "times off a CPU without one",
                  [](const Row& log) { return log.source.waits_left_out; }),
       field<Row>("lost", Type::kCount, "samples that the kernel left out",
                  [](const Row& log) { return log.source.lost; }),
       field<Row>("unread", Type::kCount, "samples whose stack could not be read",
                  [](const Row& log) { return log.source.unread; }),
       field<Row>("kernel", Type::kFlag, "whether time in the kernel is among them",
                  [](const Row& log) { return (log.source.flags & format::kSamplesKernel) != 0; }),
       field<Row>("functions", Type::kCount, "that samples saw", [](const Row& log) { return log.functions.size(); }),
       field<Row>("stacks", Type::kCount, "apart from each other", [](const Row& log) { return log.stacks.size(); }),
       field<Row>("note", Type::kText, "what would be needed for more",
                  [](const Row& log) -> const std::string& { return log.source.note; })}};
  return relation;
}

const Relation& untraced_of_trace() {
  using Row = reader::UntracedProgram;
  static const Relation relation{
      "untraced",
      "untraced",
      "A row for each program that a process started and that could not be traced",
      {field<Row>("program", Type::kText, "its file", [](const Row& r) -> const std::string& { return r.program; }),
       field<Row>("reason", Type::kText, "why, to be put behind it",
                  [](const Row& r) -> const std::string& { return r.reason; })}};
  return relation;
}

}  // namespace

std::uint64_t tracing_begin(const reader::Trace& trace, const reader::Process& process) {
  return process.start_ticks != 0 ? process.start_ticks : analysis::first_ticks(trace);
}

std::string_view rate_source_words(std::uint32_t source) {
  switch (static_cast<format::RateSource>(source)) {
    case format::RateSource::kPairs:
      return "measured against CLOCK_MONOTONIC_RAW";
    case format::RateSource::kPerf:
      return "from the kernel (perf)";
    case format::RateSource::kCpuid:
      return "from CPUID";
  }
  return "of unknown source";
}

std::string why_no_states(const reader::StateSource& source) {
  if (!source.note.empty()) return source.note;
  // Nobody watched: the trace has no record of its source.
  return "nobody recorded them in this process; 'karst attach PID --trigger PLACE' and 'karst run' record when threads "
         "run and wait";
}

const Relation& traces() {
  using Row = TraceRow;
  static const Relation relation{
      "traces",
      "trace",
      "A row for each trace, with all that it holds",
      {of_trace("file", Type::kText, "its name", [](const Row& r) -> const std::string& { return r.trace.name(); }),
       of_trace("size", Type::kBytes, "of the file", [](const Row& r) { return r.trace.file_size(); }),
       of_trace("version", Type::kText, "of its format",
                [](const Row& r) { return fmt::format("{}.{}", format::kMajorVersion, r.trace.minor_version()); }),
       of_trace("resolved", Type::kFlag, "whether it has names of functions",
                [](const Row& r) { return r.trace.resolved(); }),
       of_trace("complete", Type::kFlag, "whether it has its end", [](const Row& r) { return r.trace.complete(); }),
       of_trace("events", Type::kCount, "that it has", [](const Row& r) { return r.trace.event_count(); }),
       count_of_trace("calls", "that they are of", &TraceCounts::calls),
       count_of_trace("open_calls", "calls with a begin or an end that is not known", &TraceCounts::open_calls),
       count_of_trace("cut_calls", "calls during which their function was switched off", &TraceCounts::cut_calls),
       count_of_trace("unwound_calls", "calls that an exception ended", &TraceCounts::unwound_calls),
       count_of_trace("jumped_calls", "calls that a longjmp ended", &TraceCounts::jumped_calls),
       count_of_trace("tail_calls", "calls that a tail call ended", &TraceCounts::tail_calls),
       count_of_trace("left_calls", "of those the ones that were left before what they called came back",
                      &TraceCounts::left_calls),
       count_of_trace("notes", "that the program made", &TraceCounts::notes),
       count_of_trace("overwritten_events", "that gave way to newer ones", &TraceCounts::overwritten),
       count_of_trace("lost_events", "that were never recorded", &TraceCounts::lost),
       of_trace("span", Type::kDuration, "from its first event to its last",
                [](const Row& r) { return r.counts.span_ns; }),
       row<Row>("clock", "how times were measured", clock_of_trace(), [](const Row& r, const UseRow& use) { use(&r); }),
       row<Row>("states", "how it was recorded when threads ran and waited", states_of_trace(),
                [](const Row& r, const UseRow& use) {
                  const StatesOfTrace of{r.trace.states(), r.trace.states().source(), r.trace.clock()};
                  use(&of);
                }),
       row<Row>("samples", "how code below traced calls was sampled, if it was", samples_of_trace(),
                [](const Row& r, const UseRow& use) {
                  if (!r.trace.samples().empty()) use(&r.trace.samples());
                }),
       rows<Row>("usage", "what processes, threads and the machine used meanwhile", usage(),
                 [](const Row& r, const UseRow& use) {
                   for (const UsageRow& of : usage_rows(r.trace)) use(&of);
                 }),
       rows<Row>("kept", "moments that it keeps", moments_of_trace(),
                 [](const Row& r, const UseRow& use) {
                   for (const reader::Process& process : r.trace.processes())
                     for (const reader::Moment& moment : process.moments) {
                       const MomentOfTrace of{r, process, moment};
                       use(&of);
                     }
                 }),
       rows<Row>("processes", "its processes", processes_of_trace(),
                 [](const Row& r, const UseRow& use) {
                   for (std::size_t i = 0; i < r.counts.threads.size(); ++i) {
                     const ProcessRow of{r, r.trace.processes()[i], r.counts.threads[i]};
                     use(&of);
                   }
                 }),
       rows<Row>("untraced", "programs that could not be traced", untraced_of_trace(),
                 [](const Row& r, const UseRow& use) {
                   for (const reader::UntracedProgram& of : r.trace.untraced()) use(&of);
                 }),
       rows<Row>("problems", "what could not be used", problems(),
                 [](const Row& r, const UseRow& use) {
                   for (const reader::Problem& of : r.counts.problems) use(&of);
                 }),
       of_trace("source_files", Type::kCount, "whose text it has",
                [](const Row& r) { return r.trace.sources().size(); })}};
  return relation;
}

}  // namespace karst::answers
