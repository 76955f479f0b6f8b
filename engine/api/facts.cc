// api/trace: what is small and does not change.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <span>

#include "analysis/program_facts.h"
#include "analysis/tracing_cost.h"
#include "engine/api/api.h"
#include "engine/api/flows.h"
#include "engine/api/locks.h"
#include "engine/api/memory.h"
#include "engine/api/notes.h"
#include "engine/api/states.h"
#include "engine/api/values.h"
#include "engine/protocol.h"
#include "engine/tiles/tracks.h"
#include "format/control.h"
#include "format/trace.h"
#include "reader/moments.h"

namespace karst::engine {
namespace {

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

void write_time(Json& json, const char* name, const TraceIndex& index, std::uint64_t ticks) {
  json.key(name);
  if (ticks == 0) {
    json.null();
  } else {
    json.value(index.since_origin(ticks));
  }
}

void write_clock(Json& json, const TraceIndex& index) {
  const reader::Clock& clock = index.trace().clock();
  json.key("clock").open('{').field("ticks_per_second", clock.ticks_per_second);
  json.field("rate_source", rate_source(clock.rate_source));
  json.key("start_realtime_ns");
  if (clock.pairs.empty()) {
    json.null();
  } else {
    const reader::ClockPair& pair = clock.pairs.front();
    const std::uint64_t origin = index.origin();
    const std::uint64_t start = origin >= pair.ticks ? pair.realtime_ns + clock.to_ns(origin - pair.ticks)
                                                     : pair.realtime_ns - clock.to_ns(pair.ticks - origin);
    json.value(std::to_string(start));
  }
  json.field("resolution_ns", 1e9 / static_cast<double>(clock.ticks_per_second)).close('}');
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

// How many functions a switch is of, and some of them as indices into `functions`: a name tells more than a number.
// Those that were never called have none. A tail call's exit has a number beside its function's, and is none of its
// own.
void write_named(Json& json, const TraceIndex& index, std::size_t process, const reader::Switch& of) {
  constexpr std::size_t kMostNamed = 4;
  constexpr std::size_t kMostLooks = 4096;
  const std::vector<reader::Function>& known = index.trace().processes()[process].functions;
  const auto& functions = index.functions().of_process(static_cast<std::uint32_t>(process));
  std::uint64_t count = 0;
  std::vector<std::uint32_t> named;
  const std::size_t looks = of.first == 0 ? 0 : std::min<std::size_t>(of.count, kMostLooks);
  for (std::size_t id = of.first; id < std::size_t{of.first} + looks && id < known.size(); ++id) {
    if (known[id].id == 0 || known[id].tail_exit) continue;
    ++count;
    if (named.size() < kMostNamed && index.functions().functions()[functions[id]].occurs)
      named.push_back(functions[id]);
  }
  json.field("functions", of.count > kMostLooks || count == 0 ? of.count : count);
  json.list("named", named, [](std::uint32_t function) { return function; });
}

void write_switches(Json& json, const TraceIndex& index, const reader::Process& process) {
  const auto number = static_cast<std::size_t>(&process - index.trace().processes().data());
  json.key("switches").open('[');
  for (std::size_t i = 0; i < process.switches.size() && i < kMaxGaps; ++i) {
    const reader::Switch& of = process.switches[i];
    json.open('{').field("begin", index.since_origin(of.begin_ticks));
    write_time(json, "end", index, of.end_ticks);
    json.field("all", of.first == 0).field("first", of.first).field("ids", of.count).field("on", of.on);
    json.field("reason", switch_reason(of.reason));
    write_named(json, index, number, of);
    json.close('}');
  }
  json.close(']').field("switch_count", process.switches.size());
}

// What was asked to be kept. A moment's thread is -1 where it is of all, or made no traced call.
// The call that lasted from `begin` to `end`: what a moment kept was one. The outermost of several.
std::optional<std::uint32_t> call_between(const ThreadIndex& thread, std::uint64_t begin, std::uint64_t end) {
  const CallColumns& calls = thread.calls;
  const auto first = std::lower_bound(calls.begin.begin(), calls.begin.end(), begin);
  for (auto row = static_cast<std::uint32_t>(first - calls.begin.begin());
       row < calls.size() && calls.begin[row] == begin; ++row)
    if (calls.end(row) == end) return row;
  return std::nullopt;
}

void write_moments(Json& json, const TraceIndex& index, const reader::Process& process) {
  json.key("moments").open('[');
  for (std::size_t i = 0; i < process.moments.size() && i < kMaxGaps; ++i) {
    const reader::Moment& moment = process.moments[i];
    std::int64_t thread = -1;
    for (std::size_t t = 0; t < index.threads().size(); ++t) {
      const reader::Thread& of = *index.threads()[t].thread;
      if (&index.trace().processes()[of.process] == &process && of.index == moment.thread)
        thread = static_cast<std::int64_t>(t);
    }
    json.open('{').field("number", moment.number).field("kind", reader::moment_kind_name(moment.kind));
    json.field("begin", index.since_origin(moment.begin_ticks)).field("end", index.since_origin(moment.end_ticks));
    json.field("kept_from", index.since_origin(moment.kept_from)).field("kept_to", index.since_origin(moment.kept_to));
    json.field("thread", thread).field("what", moment.what).field("lost_events", moment.lost_events);
    const ThreadIndex* of = thread < 0 ? nullptr : &index.threads()[static_cast<std::size_t>(thread)];
    if (const auto row = of == nullptr ? std::nullopt : call_between(*of, moment.begin_ticks, moment.end_ticks))
      json.field("index", *row).field("function", index.function_of(*of, *row));
    json.close('}');
  }
  json.close(']');
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

void write_processes(Json& json, const TraceIndex& index) {
  json.key("processes").open('[');
  for (const reader::Process& process : index.trace().processes()) {
    json.open('{').field("pid", process.pid).field("parent_pid", process.parent_pid).field("name", process.name);
    json.list("command_line", process.command_line, [](const std::string& word) { return std::string_view(word); });
    if (const std::vector<std::string_view> lines = analysis::app_info(process); !lines.empty())
      json.list("app_info", lines, [](std::string_view line) { return line; });
    json.field("executable", process.executable).field("options", process.options);
    write_time(json, "begin", index, process.start_ticks);
    write_time(json, "end", index, process.end_ticks);
    json.key("wait_status");
    if (process.wait_status == -1) {
      json.null();
    } else {
      json.value(process.wait_status);
    }
    json.field("call_cost", analysis::call_cost_ns(process.cost, index.trace().clock()));
    json.field("ended", (process.flags & format::kProcessEnded) != 0);
    json.field("damaged", (process.flags & format::kProcessDamaged) != 0);
    json.field("overwritten_events", process.overwritten_events).field("lost_events", process.lost_events);
    write_switches(json, index, process);
    write_moments(json, index, process);
    json.close('}');
  }
  json.close(']');
}

void write_threads(Json& json, const TraceIndex& index) {
  json.key("threads").open('[');
  std::map<std::uint32_t, std::map<std::uint32_t, std::string_view>> groups;  // by process
  for (const ThreadIndex& thread : index.threads()) {
    const reader::Thread& of = *thread.thread;
    json.open('{').field("process", of.process).field("tid", of.tid).field("name", of.name);
    if (of.fiber) json.field("fiber", true);
    auto known = groups.find(of.process);
    if (known == groups.end())
      known = groups.emplace(of.process, analysis::thread_groups(index.trace().processes()[of.process])).first;
    if (const auto group = known->second.find(of.index); group != known->second.end() && !of.fiber)
      json.field("group", group->second);
    const std::uint64_t joined = of.joined_ticks == 0 ? thread.first_ticks : of.joined_ticks;
    write_time(json, "begin", index, joined);
    write_time(json, "end", index, of.exited ? of.exited_ticks : 0);
    write_time(json, "first", index, thread.first_ticks);
    write_time(json, "last", index, thread.last_ticks);
    json.field("exited", of.exited).field("calls", thread.calls.size()).field("depths", thread.levels());
    json.field("events", thread.events);
    json.field("overwritten_events", of.overwritten_events).field("lost_events", of.lost_events);
    json.field("out_of_order", thread.out_of_order).field("unmatched_exits", thread.unmatched_exits);
    json.field("missing_exits", thread.missing_exits).field("beyond_depth", thread.lanes.beyond_depth());
    json.key("gaps").open('[');
    for (const Gap& gap : thread.gaps) {
      json.open('{').field("begin", index.since_origin(gap.begin)).field("end", index.since_origin(gap.end));
      json.field("kind", gap.overwritten ? "overwritten" : "missing").field("blocks", gap.blocks).close('}');
    }
    json.close(']').field("gap_count", thread.gap_count).field("states", thread.states != nullptr);
    write_note_counts(json, thread);
    if (!thread.is_read()) json.field("unread_from", index.since_origin(thread.unread_from));
    json.close('}');
  }
  json.close(']');
}

void write_tracks(Json& json, const TraceIndex& index) {
  json.key("tracks").open('[');
  for (const Track& track : tracks_of(index)) {
    json.open('{').field("id", track.id).field("kind", track.kind->name()).field("name", track.facts.name);
    json.field("owner", track.facts.owner).field("lanes", track.facts.lanes).close('}');
  }
  json.close(']');
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

// By the number of a function that occurs: the colour that the program gave a zone.
std::map<std::uint32_t, std::uint32_t> zone_colors(const TraceIndex& index) {
  std::map<std::uint32_t, std::uint32_t> colors;
  const FunctionList& list = index.functions();
  for (std::uint32_t process = 0; process < index.trace().processes().size(); ++process) {
    const std::vector<reader::Function>& known = index.trace().processes()[process].functions;
    const auto& numbers = list.of_process(process);
    for (std::size_t id = 0; id < known.size() && id < numbers.size(); ++id)
      if (const auto color = analysis::color_of(known[id]);
          color && list.has(process, static_cast<std::uint32_t>(id)) && list.functions()[numbers[id]].occurs)
        colors[numbers[id]] = *color;
  }
  return colors;
}

// Those that occur: a program may have a thousand times as many.
void write_functions(Json& json, const TraceIndex& index) {
  const FunctionList& list = index.functions();
  UsedTexts modules(list.modules());
  UsedTexts files(list.files());
  std::vector<std::uint32_t> shown;
  for (std::uint32_t i = 0; i < list.functions().size(); ++i) {
    if (list.functions()[i].occurs) shown.push_back(i);
  }
  const auto each = [&](const char* name, auto of) {
    json.list(name, shown, [&](std::uint32_t number) { return of(list.functions()[number]); });
  };
  json.key("functions").open('{').field("count", list.functions().size());
  json.list("number", shown, [](std::uint32_t number) { return number; });
  each("name", [](const FunctionInfo& f) { return std::string_view(f.name); });
  each("module", [&](const FunctionInfo& f) { return modules.of(f.module); });
  each("file", [&](const FunctionInfo& f) { return files.of(f.file); });
  each("line", [](const FunctionInfo& f) { return f.line; });
  each("calls", [](const FunctionInfo& f) { return f.calls; });
  const std::map<std::uint32_t, std::uint32_t> colors = zone_colors(index);
  if (!colors.empty()) {
    json.list("colored", colors, [](const auto& one) { return one.first; });
    json.list("colors", colors, [](const auto& one) { return one.second; });
  }
  json.close('}');
  const auto text = [](std::string_view path) { return path; };
  json.list("modules", modules.used, text).list("files", files.used, text);
  std::vector<std::string_view> sources;
  for (const reader::SourceFile& source : index.trace().sources()) sources.push_back(source.path);
  std::sort(sources.begin(), sources.end());
  json.list("has_source", files.used,
            [&](std::string_view path) { return std::binary_search(sources.begin(), sources.end(), path); });
}

void write_sampled(Json& json, const TraceIndex& index) {
  const reader::SampleLog& log = index.trace().samples();
  if (log.empty()) return;
  json.key("sampled").open('{').field("period", log.source.period_ns).field("samples", log.samples.size());
  json.field("lost", log.source.lost).field("kernel", (log.source.flags & format::kSamplesKernel) != 0);
  json.key("functions").open('[');
  for (const reader::SampledFunction& function : log.functions) {
    json.open('{').field("name", function.name).field("module", function.module).field("file", function.file);
    json.field("line", function.line).close('}');
  }
  json.close(']').close('}');
}

}  // namespace

std::string trace_json(const TraceIndex& index, std::string_view version, std::size_t traces, bool keep, bool can_cut) {
  const reader::Trace& trace = index.trace();
  Json json;
  json.open('{').field("version", version);
  json.field("name", std::filesystem::path(trace.name()).filename().string()).field("path", trace.name());
  json.field("file_size", trace.file_size()).field("resolved", trace.resolved()).field("complete", trace.complete());
  json.field("keep", keep).field("traces", traces);
  json.field("span", index.since_origin(index.last_ticks())).field("extent", index.since_origin(last_end(index)));
  if (index.part()) {
    const TickRange& range = index.part()->range;
    json.key("range").open('{').field("begin", index.since_origin(std::max(range.begin, index.origin())));
    json.field("end", index.since_origin(std::min(range.end, index.last_ticks()))).close('}');
  }
  json.field("calls", index.calls());
  json.field("events", trace.event_count());
  if (index.is_partial()) {
    const auto read = std::count_if(index.threads().begin(), index.threads().end(),
                                    [](const ThreadIndex& thread) { return thread.is_read(); });
    json.key("reading").open('{').field("threads_read", static_cast<std::uint64_t>(read)).close('}');
  }
  write_clock(json, index);
  json.key("problems").open('[');
  for (const reader::Problem& problem : trace.problems()) {
    json.open('{').field("message", problem.message).field("count", problem.count).close('}');
  }
  json.close(']');
  write_processes(json, index);
  write_threads(json, index);
  write_tracks(json, index);
  write_functions(json, index);
  const std::vector<std::uint32_t> with_values = functions_with_values(index);
  if (!with_values.empty()) json.list("values", with_values, [](std::uint32_t number) { return number; });
  const std::vector<std::uint32_t> lock_waits = functions_that_wait(index);
  if (!lock_waits.empty()) json.list("lock_waits", lock_waits, [](std::uint32_t number) { return number; });
  if (Memory::has(index)) json.field("memory", true);
  if (has_flows(index)) json.field("flows", true);
  write_state_facts(json, index);
  write_sampled(json, index);
  json.key("features").open('[');
  if (can_cut) json.value("cut");
  json.close(']').close('}');
  return json.take();
}

}  // namespace karst::engine
