// SPDX-License-Identifier: MIT
#include "engine/api/process_facts.h"

#include <optional>

#include "analysis/program_facts.h"
#include "analysis/tracing_cost.h"
#include "engine/api/facts.h"
#include "engine/protocol.h"
#include "format/control.h"
#include "format/trace.h"
#include "reader/moments.h"

namespace karst::engine {
namespace {

using answers::field;
using answers::field_if_known;
using answers::list;
using answers::Relation;
using answers::rows;
using answers::Type;
using answers::UseRow;
using answers::Value;
using answers::value_of;

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
}  // namespace

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

}  // namespace karst::engine
