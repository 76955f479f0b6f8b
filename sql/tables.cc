// SPDX-License-Identifier: MIT
#include "sql/tables.h"

#include <array>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "analysis/report.h"
#include "answers/files.h"
#include "answers/flows.h"
#include "answers/frames.h"
#include "answers/functions.h"
#include "answers/locks.h"
#include "answers/memory.h"
#include "answers/notes.h"
#include "answers/requests.h"
#include "answers/samples.h"
#include "answers/states.h"
#include "answers/traces.h"
#include "answers/usage.h"
#include "base/text.h"
#include "columns/edges.h"
#include "sql/calls.h"
#include "sql/within.h"

namespace karst::sql {
namespace {

using answers::Times;

template <typename Use>
void each_thread(const Source& source, Use use) {
  reader::Calls calls;
  for (const reader::Thread* thread : source.threads) {
    calls = source.calls_of(*thread, std::move(calls));
    use(*thread, calls);
  }
}

/// Of all of a thread, without filters and with costs.
template <typename Use>
void each_recorded(const Source& source, Use use) {
  reader::Calls calls;
  for (const reader::Thread* thread : source.threads) {
    calls = reader::rebuild_calls(source.trace, *thread, std::move(calls));
    use(*thread, calls);
  }
}

struct KeptReport {
  explicit KeptReport(const Source& source) : builder(source.trace) {
    each_thread(source, [&](const reader::Thread& thread, const reader::Calls& calls) { builder.add(thread, calls); });
    report = builder.finish();
    analysis::sort_by_total(report);
  }
  analysis::ReportBuilder builder;
  analysis::Report report;
};

struct KeptFunctions : KeptReport {
  explicit KeptFunctions(const Source& source) : KeptReport(source), context(report) {}
  answers::ReportContext context;
};

std::unique_ptr<List> functions(const Source& source) {
  auto list = std::make_unique<ListOf<answers::FunctionRow, KeptFunctions>>(source);
  for (const analysis::FunctionReport& of : list->kept.report.functions) list->rows.push_back({list->kept.context, of});
  return list;
}

struct KeptEdges {
  explicit KeptEdges(const Source& source) : builder(source.trace), times(source.trace) {
    each_thread(source, [&](const reader::Thread& thread, const reader::Calls& calls) {
      builder.add(thread, calls);
      sums.add(builder.parts().latest());
    });
    sums.settle();
  }
  analysis::ReportBuilder builder;
  columns::EdgeSums sums;
  Times times;
};

std::unique_ptr<List> edges(const Source& source) {
  auto list = std::make_unique<ListOf<answers::EdgeRow, KeptEdges>>(source);
  const auto& functions = list->kept.builder.parts().functions().functions();
  for (const columns::Edge& of : list->kept.sums.edges()) {
    const bool is_called = of.caller != columns::kNoFunction;
    list->rows.push_back(
        {of, is_called ? &functions[of.caller].name : nullptr, functions[of.callee].name, list->kept.times});
  }
  return list;
}

struct KeptNotes {
  explicit KeptNotes(const Source& source) : times(source.trace) {}
  Times times;
  std::deque<reader::Calls> calls;  // of threads with notes
};

std::unique_ptr<List> notes(const Source& source) {
  auto list = std::make_unique<ListOf<answers::NoteRow, KeptNotes>>(source);
  for (const reader::Thread* thread : source.threads) {
    reader::Calls made = source.calls_of(*thread, {});
    if (made.notes.empty()) continue;
    const reader::Calls& calls = list->kept.calls.emplace_back(std::move(made));
    for (const reader::Note& note : calls.notes) {
      const format::KindOfNote& kind = format::kind_of_note(note.kind);
      if (kind.is_listed() || kind.is_of_call())
        list->rows.push_back({source.trace, list->kept.times, *thread, calls, note});
    }
  }
  return list;
}

struct KeptRequests {
  explicit KeptRequests(const Source& source) : times(source.trace) {
    analysis::RequestFinder finder(source.trace, nullptr, std::nullopt, false);
    each_recorded(source, [&](const reader::Thread& thread, const reader::Calls& calls) {
      if (!calls.notes.empty()) finder.add(thread, calls, calls);
    });
    requests = finder.take();
  }
  Times times;
  std::vector<analysis::Request> requests;
};

std::unique_ptr<List> requests(const Source& source) {
  auto list = std::make_unique<ListOf<answers::RequestRow, KeptRequests>>(source);
  for (const analysis::Request& of : list->kept.requests) list->rows.push_back({of, list->kept.times});
  return list;
}

struct KeptFlows {
  explicit KeptFlows(const Source& source) : times(source.trace) {
    analysis::FlowFinder finder(source.trace);
    each_recorded(source, [&](const reader::Thread& thread, const reader::Calls& calls) {
      if (analysis::tells_of_flows(source.trace, thread)) finder.add(thread, calls);
    });
    flows = finder.take();
    for (const analysis::Flow& of : flows) rows.push_back({of, source.trace, times});
  }
  Times times;
  std::vector<analysis::Flow> flows;
  std::deque<answers::FlowRow> rows;
};

std::unique_ptr<List> flows(const Source& source) {
  auto list = std::make_unique<ListOf<answers::FlowRow, KeptFlows>>(source);
  for (const answers::FlowRow& of : list->kept.rows) list->rows.push_back(of);
  return list;
}

/// Rows that are within those of a flow.
Outer of_flows() {
  return {answers::flows(),
          [](const Source& source, const answers::UseRow& use) {
            const KeptFlows kept(source);
            for (const answers::FlowRow& of : kept.rows) use(&of);
          },
          {"flow", "id"}};
}

/// What a trace has without a look at its events.
Outer of_trace() {
  return {answers::traces(), [](const Source& source, const answers::UseRow& use) {
            const auto counts = answers::TraceCounts::without_events(source.trace);
            const answers::TraceRow row(source.trace, counts);
            use(&row);
          }};
}

/// What a trace has, with numbers of calls.
Outer of_counted_trace() {
  return {answers::traces(), [](const Source& source, const answers::UseRow& use) {
            const answers::TraceCounts counts = answers::count_trace(source.trace);
            const answers::TraceRow row(source.trace, counts);
            use(&row);
          }};
}

struct KeptTimes {
  explicit KeptTimes(const Source& source) : times(source.trace) {}
  Times times;
};

std::unique_ptr<List> thread_states(const Source& source) {
  auto list = std::make_unique<ListOf<answers::StateRow, KeptTimes>>(source);
  const analysis::StateThreads threads(source.trace);
  const std::uint64_t start = analysis::first_ticks(source.trace);
  for (const reader::Thread* thread : source.threads) {
    const reader::ThreadStates* states = threads.states_of(*thread);
    if (states == nullptr) continue;
    for (std::size_t at = 0; at < states->size(); ++at)
      if (states->end_of(at) > start) list->rows.push_back({source.trace, list->kept.times, *thread, *states, at});
  }
  return list;
}

std::unique_ptr<List> usage_values(const Source& source) {
  auto list = std::make_unique<ListOf<answers::UsageValueRow, KeptTimes>>(source);
  const std::uint64_t start = analysis::first_ticks(source.trace);
  for (const reader::UsageSeries& series : source.trace.usage().series) {
    std::vector<analysis::UsageSample> samples = analysis::usage_samples(series, source.trace.clock());
    analysis::cut_samples(samples, start, ~std::uint64_t{0});
    for (const analysis::UsageSample& at : samples) list->rows.push_back({series, list->kept.times, at});
  }
  return list;
}

struct KeptFrames {
  explicit KeptFrames(const Source& source) : frames(source.trace) {
    for (const analysis::Frames::Set& of : frames.sets())
      sets.push_back(answers::frame_set(source.trace, frames, of, std::nullopt, 0));
  }
  analysis::Frames frames;
  std::deque<answers::FrameSetRow> sets;
};

std::unique_ptr<List> frames(const Source& source) {
  auto list = std::make_unique<ListOf<answers::FrameRow, KeptFrames>>(source);
  for (const answers::FrameSetRow& set : list->kept.sets)
    for (const answers::FrameSetRow::Frame& of : set.frames) list->rows.push_back({set, of});
  return list;
}

struct NothingKept {};

std::unique_ptr<List> memory(const Source& source, bool by_path) {
  auto list = std::make_unique<ListOf<answers::MemoryRow, NothingKept>>();
  analysis::Parts parts(source.trace);
  analysis::MemoryFinder finder(source.trace, &parts);
  each_recorded(source,
                [&](const reader::Thread& thread, const reader::Calls& calls) { finder.add(thread, calls, nullptr); });
  list->rows = answers::memory_rows(parts, finder.take(std::numeric_limits<std::uint64_t>::max()), by_path);
  return list;
}

struct KeptLocks {
  explicit KeptLocks(const Source& source)
      : names(source.trace), context{source.trace, names, analysis::has_holds(source.trace), Times(source.trace)} {
    analysis::HoldFinder finder(source.trace);
    each_thread(source, [&](const reader::Thread& thread, const reader::Calls& calls) {
      const auto of = analysis::lock_waits(source.trace, thread, calls, nullptr);
      waits.insert(waits.end(), of.begin(), of.end());
      if (context.holds_known) finder.add(thread, calls);
    });
    holds = finder.take(waits);
    context.holds_known &= !holds.stripped;
    analysis::fill_in_holders(holds, waits);
    reader::Calls holder;
    analysis::find_holders(source.trace, waits, [&](const reader::Thread& thread) {
      holder = reader::rebuild_calls(source.trace, thread, std::move(holder));
      return columns::CallColumns(holder);
    });
    locks = analysis::locks_with_use(source.trace, names, waits, holds, nullptr);
  }
  analysis::LockNames names;
  answers::LockContext context;
  std::vector<analysis::LockWait> waits;
  analysis::LockHolds holds;
  std::vector<analysis::LockAndUse> locks;
};

std::unique_ptr<List> locks(const Source& source) {
  auto list = std::make_unique<ListOf<answers::LockRow, KeptLocks>>(source);
  for (const analysis::LockAndUse& of : list->kept.locks) list->rows.push_back({list->kept.context, of.of, of.use});
  return list;
}

std::unique_ptr<List> lock_waits(const Source& source) {
  auto list = std::make_unique<ListOf<answers::LockWaitRow, KeptLocks>>(source);
  for (const analysis::LockWait& of : list->kept.waits) list->rows.push_back({list->kept.context, of});
  return list;
}

std::unique_ptr<List> lock_holds(const Source& source) {
  auto list = std::make_unique<ListOf<answers::LockHoldRow, KeptLocks>>(source);
  for (const analysis::LockHold& of : list->kept.holds.holds) list->rows.push_back({list->kept.context, of});
  return list;
}

struct KeptFiles {
  explicit KeptFiles(const Source& source, bool by_function = false)
      : descriptors(source.trace),
        facts{source.trace, descriptors, Times(source.trace)},
        sums(source.trace, by_function) {
    each_thread(source, [&](const reader::Thread& thread, const reader::Calls& of) {
      for (analysis::FileCall& call : analysis::file_calls(source.trace, descriptors, thread, of, nullptr)) {
        sums.add(call);
        calls.push_back(std::move(call));
      }
    });
    groups = sums.sorted();
  }
  analysis::Descriptors descriptors;
  answers::FileFacts facts;
  analysis::FileGroups sums;
  std::vector<analysis::FileGroup> groups;
  std::vector<analysis::FileCall> calls;
};

struct KeptFileUsers : KeptFiles {
  explicit KeptFileUsers(const Source& source) : KeptFiles(source, true) {}
};

std::unique_ptr<List> files(const Source& source) {
  auto list = std::make_unique<ListOf<answers::FileRow, KeptFiles>>(source);
  for (const analysis::FileGroup& of : list->kept.groups) list->rows.push_back({list->kept.facts, of});
  return list;
}

std::unique_ptr<List> file_users(const Source& source) {
  auto list = std::make_unique<ListOf<answers::FileRow, KeptFileUsers>>(source);
  for (const analysis::FileGroup& of : list->kept.groups) list->rows.push_back({list->kept.facts, of});
  return list;
}

std::unique_ptr<List> file_calls(const Source& source) {
  auto list = std::make_unique<ListOf<answers::FileCallRow, KeptFiles>>(source);
  for (const analysis::FileCall& of : list->kept.calls) list->rows.push_back({list->kept.facts, of});
  return list;
}

struct KeptSamples {
  explicit KeptSamples(const Source& source) : times(source.trace) {
    if (source.trace.samples().empty()) return;
    analysis::SampleAdder adder(source.trace, nullptr, false, columns::TickRange());
    analysis::SamplePlaces places(source.trace, analysis::SamplesOf::kCpu);
    places.know_calls_from(columns::TickRange().begin);
    each_thread(source, [&](const reader::Thread& thread, const reader::Calls& calls) {
      places.each(thread, columns::CallColumns(calls), calls.first_ticks,
                  [&](const analysis::SamplePlace& place) { adder.add(thread, calls, place); });
    });
    places.each_other([&](const analysis::SamplePlace& place) { adder.add_other(place); });
    sums = adder.take();
  }
  Times times;
  analysis::SampleSums sums;
};

std::unique_ptr<List> sampled_functions(const Source& source) {
  auto list = std::make_unique<ListOf<answers::SampledFunctionRow, KeptSamples>>(source);
  const analysis::SampleSums& sums = list->kept.sums;
  for (const analysis::FunctionSamples& of : sums.functions)
    list->rows.push_back(
        {source.trace.samples().functions[of.function], of, sums.all.ticks, list->kept.times, of.mostly_below()});
  return list;
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
      Table{&calls(), nullptr, scan_calls},
      Table{&answers::functions(), functions},
      Table{&answers::edges(), edges},
      Table{&answers::notes(), notes},
      Table{&answers::requests(), requests},
      Table{&answers::flows(), flows},
      within("flow_steps", of_flows(), {{"steps"}}),
      Table{&answers::frames(), frames},
      Table{&answers::locks(), locks},
      Table{&answers::lock_waits(), lock_waits},
      Table{&answers::lock_holds(), lock_holds},
      Table{&answers::files(), files},
      Table{&answers::file_users(), file_users},
      Table{&answers::file_calls(), file_calls},
      Table{&answers::memory_of_functions(), [](const Source& source) { return memory(source, false); }},
      Table{&answers::memory_of_paths(), [](const Source& source) { return memory(source, true); }},
      Table{&answers::sampled_functions(), sampled_functions},
      Table{&answers::thread_states(), thread_states},
      within("usage", of_trace(), {{"usage"}}),
      Table{&answers::usage_values(), usage_values},
      within("processes", of_trace(), {{"processes"}}),
      within("threads", of_counted_trace(), {{"processes", {"pid"}}, {"threads"}}),
      within("modules", of_trace(), {{"processes", {"pid"}}, {"modules"}}),
      within("switches", of_trace(), {{"processes", {"pid"}}, {"switches"}}),
      within("moments", of_trace(), {{"kept"}}),
      within("untraced", of_trace(), {{"untraced"}}),
      within("problems", of_counted_trace(), {{"problems"}})};
  return all;
}

std::span<const Derived> derived() { return kDerived; }

}  // namespace karst::sql
