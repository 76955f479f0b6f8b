// SPDX-License-Identifier: MIT
// api/trace: what is small and does not change.
#include "engine/api/facts.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "analysis/program_facts.h"
#include "answers/problems.h"
#include "engine/api/api.h"
#include "engine/api/flows.h"
#include "engine/api/function_facts.h"
#include "engine/api/locks.h"
#include "engine/api/memory.h"
#include "engine/api/process_facts.h"
#include "engine/api/rows.h"
#include "engine/api/states.h"
#include "engine/api/thread_facts.h"
#include "engine/api/values.h"
#include "engine/protocol.h"
#include "engine/tiles/tracks.h"
#include "format/trace.h"

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

std::uint64_t last_end(const TraceIndex& index) {
  std::uint64_t last = index.last_ticks();
  for (const ThreadIndex& thread : index.threads()) {
    if (thread.calls.size() == 0 || !thread.is_read()) continue;
    const std::span<const std::uint32_t> outermost = thread.lanes.rows(0);
    if (!outermost.empty()) last = std::max(last, thread.calls.end(outermost.back()));
  }
  return last;
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
  const Api::Server& server;
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
       field<Row>("growing", Type::kFlag, "whether it has none as its recording goes on, or was ended by force",
                  [](const Row& r) { return r.trace().growing(); }),
       field<Row>("keep", Type::kFlag, "whether the server stays when the page goes",
                  [](const Row& r) { return r.asked.server.keep; }),
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
       field<Row>("usage", Type::kFlag, "whether it tells what processes and the machine used",
                  [](const Row& r) { return !r.trace().usage().empty(); }),
       list<Row>("features", Type::kText, "what the server can do: cut, query", [](const Row& r, const auto& use) {
         if (r.asked.server.cut != nullptr) use("cut");
         if (r.asked.server.query) use("query");
       })}};
  return relation;
}

std::string trace_json(const TraceIndex& index, std::string_view version, std::size_t traces,
                       const Api::Server& server) {
  const TraceAsked asked{version, traces, server};
  const TraceFact fact{index, asked, FunctionFacts(index)};
  Json json;
  json.open('{');
  write_row(json, index, trace_facts(), &fact);
  json.close('}');
  return json.take();
}

}  // namespace karst::engine
