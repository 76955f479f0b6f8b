// SPDX-License-Identifier: MIT
#include "sql/tables.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/selection.h"
#include "analysis/usage.h"
#include "answers/usage.h"
#include "sql/calls.h"
#include "sql/gatherers.h"
#include "sql/slow.h"
#include "sql/within.h"

namespace karst::sql {
namespace {

/// A table whose rows `add` makes of what a gatherer has.
template <typename Row, typename Of>
Table listed(const answers::Relation& relation, void (*add)(const Of& of, std::vector<Row>& rows)) {
  Table table{&relation};
  table.gatherer = make_gatherer<Of>;
  table.list = [add](std::shared_ptr<const Gatherer> of) -> std::unique_ptr<List> {
    const auto& known = static_cast<const Of&>(*of);
    auto list = std::make_unique<ListOf<Row>>(std::move(of));
    add(known, list->rows);
    return list;
  };
  return table;
}

/// Under a name that tells more beside other tables, or that is no word of SQL's own.
Table renamed(std::string name, Table table) {
  auto relation = std::make_shared<answers::Relation>(*table.relation);
  relation->name = std::move(name);
  table.relation = relation.get();
  table.owned = std::move(relation);
  return table;
}

void add_functions(const FunctionSums& of, std::vector<answers::FunctionRow>& rows) {
  for (const analysis::FunctionReport& function : of.report.functions) rows.push_back({*of.context, function});
}

void add_edges(const Edges& of, std::vector<answers::EdgeRow>& rows) {
  const auto& functions = of.parts.functions().functions();
  for (const columns::Edge& edge : of.sums.edges()) {
    const bool is_called = edge.caller != columns::kNoFunction;
    rows.push_back({edge, is_called ? &functions[edge.caller].name : nullptr, functions[edge.callee].name, of.times});
  }
}

void add_notes(const Notes& of, std::vector<answers::NoteRow>& rows) {
  for (const Notes::OfThread& kept : of.threads) {
    for (const reader::Note& note : kept.calls->notes) {
      const format::KindOfNote& kind = format::kind_of_note(note.kind);
      if (kind.is_listed() || kind.is_of_call()) rows.push_back({of.trace, of.times, kept.thread, *kept.calls, note});
    }
  }
}

void add_requests(const Requests& of, std::vector<answers::RequestRow>& rows) {
  for (const analysis::Request& request : of.requests) rows.push_back({request, of.times});
}

void add_flows(const Flows& of, std::vector<answers::FlowRow>& rows) {
  for (const analysis::Flow& flow : of.flows) rows.push_back({flow, of.trace, of.times});
}

void add_frames(const FrameSets& of, std::vector<answers::FrameRow>& rows) {
  for (const answers::FrameSetRow& set : of.sets)
    for (const answers::FrameSetRow::Frame& frame : set.frames) rows.push_back({set, frame});
}

void add_locks(const Locks& of, std::vector<answers::LockRow>& rows) {
  for (const analysis::LockAndUse& lock : of.locks) rows.push_back({of.context, lock.of, lock.use});
}

void add_lock_waits(const Locks& of, std::vector<answers::LockWaitRow>& rows) {
  for (const analysis::LockWait& wait : of.waits) rows.push_back({of.context, wait});
}

void add_lock_holds(const Locks& of, std::vector<answers::LockHoldRow>& rows) {
  for (const analysis::LockHold& hold : of.holds.holds) rows.push_back({of.context, hold});
}

void add_files(const Files& of, std::vector<answers::FileRow>& rows) {
  for (const analysis::FileGroup& group : of.files) rows.push_back({of.facts, group});
}

void add_file_users(const Files& of, std::vector<answers::FileRow>& rows) {
  for (const analysis::FileGroup& group : of.users) rows.push_back({of.facts, group});
}

void add_file_calls(const Files& of, std::vector<answers::FileCallRow>& rows) {
  for (const analysis::FileCall& call : of.calls) rows.push_back({of.facts, call});
}

void add_memory_of_functions(const Memory& of, std::vector<answers::MemoryRow>& rows) {
  rows = answers::memory_rows(of.parts, of.use, false);
}

void add_memory_of_paths(const Memory& of, std::vector<answers::MemoryRow>& rows) {
  rows = answers::memory_rows(of.parts, of.use, true);
}

void add_sampled_functions(const Samples& of, std::vector<answers::SampledFunctionRow>& rows) {
  for (const analysis::FunctionSamples& function : of.sums.functions)
    rows.push_back({of.trace.samples().functions[function.function], function, of.sums.all.ticks, of.times,
                    function.mostly_below()});
}

void add_thread_states(const TraceAndTimes& of, std::vector<answers::StateRow>& rows) {
  const analysis::StateThreads threads(of.source.trace);
  const std::uint64_t start = analysis::first_ticks(of.source.trace);
  for (const reader::Thread* thread : of.source.threads) {
    const reader::ThreadStates* states = threads.states_of(*thread);
    if (states == nullptr) continue;
    for (std::size_t at = 0; at < states->size(); ++at)
      if (states->end_of(at) > start) rows.push_back({of.source.trace, of.times, *thread, *states, at});
  }
}

void add_slow_calls(const Slow& of, std::vector<answers::SlowCallRow>& rows) {
  for (const answers::SlowCall& call : of.calls) rows.push_back({of.source.trace, of.times, call});
}

void add_rare_functions(const Slow& of, std::vector<answers::RareFunctionRow>& rows) {
  for (const answers::RareFunction& function : of.rare) rows.push_back({of.source.trace, of.times, function});
}

void add_left_functions(const Slow& of, std::vector<answers::LeftFunctionRow>& rows) {
  for (const answers::LeftFunction& function : of.left) rows.push_back({of.source.trace, of.times, function});
}

void add_usage_values(const TraceAndTimes& of, std::vector<answers::UsageValueRow>& rows) {
  const std::uint64_t start = analysis::first_ticks(of.source.trace);
  for (const reader::UsageSeries& series : of.source.trace.usage().series) {
    std::vector<analysis::UsageSample> samples = analysis::usage_samples(series, of.source.trace.clock());
    analysis::cut_samples(samples, start, ~std::uint64_t{0});
    for (const analysis::UsageSample& at : samples) rows.push_back({series, of.times, at});
  }
}

/// Rows that are within those of a flow.
Outer of_flows() {
  return {answers::flows(),
          make_gatherer<Flows>,
          [](const Gatherer& of, const answers::UseRow& use) {
            const auto& flows = static_cast<const Flows&>(of);
            for (const analysis::Flow& flow : flows.flows) {
              const answers::FlowRow row{flow, flows.trace, flows.times};
              use(&row);
            }
          },
          {"flow", "id"}};
}

template <typename Of>
Outer of_trace() {
  return {answers::traces(), make_gatherer<Of>, [](const Gatherer& of, const answers::UseRow& use) {
            const answers::TraceRow row(static_cast<const Of&>(of).trace, static_cast<const Of&>(of).counts);
            use(&row);
          }};
}

constexpr std::array kDerived{
    Derived{"below(call_id)", "calls that a call made, and those that they made",
            "CREATE MACRO below(call_id) AS TABLE SELECT * FROM calls WHERE id > call_id AND id <= (SELECT last FROM "
            "calls WHERE id = call_id)"},
    Derived{"children(call_id)", "calls that a call made itself",
            "CREATE MACRO children(call_id) AS TABLE SELECT * FROM calls WHERE parent = call_id"},
    Derived{"ancestors(call_id)", "calls that a call was made in, the outermost first",
            "CREATE MACRO ancestors(call_id) AS TABLE SELECT * FROM calls WHERE id < call_id AND last >= call_id ORDER "
            "BY id"},
    Derived{"calls_during(call_id)", "calls of other threads that overlap a call in time",
            "CREATE MACRO calls_during(call_id) AS TABLE SELECT c.* FROM calls AS c, (SELECT * FROM calls WHERE id = "
            "call_id) AS it WHERE c.begin_ns < it.end_ns AND c.end_ns > it.begin_ns AND (c.tid <> it.tid "
            "OR c.pid <> it.pid)"},
    Derived{"states_during(call_id)",
            "what the thread of a call did on and off its CPU meanwhile; overlap_ns is within it",
            "CREATE MACRO states_during(call_id) AS TABLE SELECT s.*, least(s.end_ns, c.end_ns) - greatest(s.begin_ns, "
            "c.begin_ns) AS overlap_ns FROM thread_states AS s, (SELECT * FROM calls WHERE id = call_id) AS c WHERE "
            "s.tid = c.tid AND s.pid = c.pid AND s.begin_ns < c.end_ns AND s.end_ns > c.begin_ns"},
    Derived{"percentile(x, p)", "the value that p of 100 do not exceed, by the nearest rank, as in karst report",
            "CREATE MACRO percentile(x, p) AS quantile_disc(x, p / 100.0)"},
    Derived{"plain(function)", "a function's name without its parameters; 'no traced call' where there is none",
            "CREATE MACRO plain(name) AS coalesce(nullif(regexp_replace(regexp_replace(replace(name, '(anonymous "
            "namespace)::', ''), '[{]lambda[(][^{}]*[}]', '{lambda}', 'g'), '[(].*', ''), ''), 'no traced call')"},
    Derived{"sure(cases, of)", "how likely the next one is such a case, too: (cases + 1) / (of + 2)",
            "CREATE MACRO sure(cases, total) AS (cases + 1) / (total + 2)"}};

}  // namespace

std::span<const Table> tables() {
  static const std::vector<Table> all{
      Table{.relation = &calls(), .scan = scan_calls},
      listed(answers::functions(), add_functions),
      listed(answers::edges(), add_edges),
      listed(answers::notes(), add_notes),
      listed(answers::requests(), add_requests),
      listed(answers::flows(), add_flows),
      within("flow_steps", of_flows(), {{"steps"}}),
      listed(answers::frames(), add_frames),
      listed(answers::slow_calls(), add_slow_calls),
      renamed("rare_functions", listed(answers::rare_functions(), add_rare_functions)),
      renamed("left_functions", listed(answers::left_functions(), add_left_functions)),
      listed(answers::locks(), add_locks),
      listed(answers::lock_waits(), add_lock_waits),
      listed(answers::lock_holds(), add_lock_holds),
      listed(answers::files(), add_files),
      listed(answers::file_users(), add_file_users),
      listed(answers::file_calls(), add_file_calls),
      listed(answers::memory_of_functions(), add_memory_of_functions),
      listed(answers::memory_of_paths(), add_memory_of_paths),
      listed(answers::sampled_functions(), add_sampled_functions),
      listed(answers::thread_states(), add_thread_states),
      within("usage", of_trace<TraceFacts>(), {{"usage"}}),
      listed(answers::usage_values(), add_usage_values),
      within("processes", of_trace<TraceFacts>(), {{"processes"}}),
      within("threads", of_trace<CountedTrace>(), {{"processes", {"pid"}}, {"threads"}}),
      within("modules", of_trace<TraceFacts>(), {{"processes", {"pid"}}, {"modules"}}),
      within("switches", of_trace<TraceFacts>(), {{"processes", {"pid"}}, {"switches"}}),
      within("moments", of_trace<TraceFacts>(), {{"kept"}}),
      within("untraced", of_trace<TraceFacts>(), {{"untraced"}}),
      within("problems", of_trace<CountedTrace>(), {{"problems"}})};
  return all;
}

std::span<const Derived> derived() { return kDerived; }

}  // namespace karst::sql
