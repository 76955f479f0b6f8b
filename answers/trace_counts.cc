// SPDX-License-Identifier: MIT
#include "answers/trace_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/selection.h"
#include "base/plain_name.h"
#include "base/text.h"

namespace karst::answers {
namespace {

using CallsByName = std::map<std::string, std::uint64_t>;

/// Adds calls that have no end though their caller has one.
void add_unended(const reader::Trace& trace, const reader::Process& process, const reader::Calls& calls,
                 CallsByName& of) {
  for (std::size_t row = 0; row < calls.size(); ++row) {
    const auto ended = [&](std::size_t at) { return (calls.marks[at] & reader::kCallOpenEnd) == 0; };
    const std::uint32_t parent = calls.parent[row];
    if (ended(row) || parent == reader::kNoParent || !ended(parent) || reader::call_is_cut(calls.marks[row])) continue;
    if ((calls.marks[row] & reader::kCallSwitched) == 0) ++of[trace.function(process, calls.function[row]).name];
  }
}

/// "; of parse (12), next (3) and 2 more functions", those with most calls first.
std::string names_text(const CallsByName& of) {
  constexpr std::size_t kMost = 3;
  std::vector<std::pair<std::uint64_t, std::string_view>> sorted;
  for (const auto& [name, count] : of) sorted.emplace_back(count, name);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, sorted.size()); ++i)
    text +=
        fmt::format("{}{} ({})", i == 0 ? "; of " : ", ", plain_name(sorted[i].second), count_text(sorted[i].first));
  if (sorted.size() > kMost) text += " and " + plural(sorted.size() - kMost, "more function");
  return text;
}

/// What could not be used, by kind.
struct Faults {
  std::uint64_t out_of_order = 0, unmatched = 0, missing = 0, unknown = 0, gaps = 0, strange = 0, beyond = 0;
  CallsByName unended;

  void add(const reader::Trace& trace, const reader::Process& process, const reader::Calls& calls) {
    out_of_order += calls.out_of_order;
    unmatched += calls.unmatched_exits;
    missing += calls.missing_exits;
    if (calls.missing_exits != 0) add_unended(trace, process, calls, unended);
    unknown += calls.unknown_ids;
    gaps += calls.missing_blocks;
    strange += calls.strange_jumps;
    beyond += calls.beyond_limit;
  }
};

void tell(const Faults& faults, bool is_patched, std::vector<reader::Problem>& problems) {
  const auto add = [&](std::uint64_t count, const std::string& message) {
    if (count != 0) problems.push_back({message, count});
  };
  add(faults.out_of_order, "events earlier than the one before them: their times cannot be trusted");
  add(faults.unmatched, "returns that fit no call: they are left out");
  // No compiler of ours has seen patched code: what it does was read from its instructions, maybe wrongly.
  add(faults.missing,
      (is_patched ? "calls whose caller returned while they had not (a way out that was not seen, or a lost event; in "
                    "code that was not built for tracing a fault of Karst's: leave their functions out by "
                    "--not-function, and tell us): marked open"
                  : "calls whose caller returned while they had not (a way out that was not seen, or a lost event): "
                    "marked open") +
          names_text(faults.unended));
  add(faults.unknown, "events of functions that the trace has no record of: shown as function#ID");
  add(faults.strange, "longjmps to a place whose call is not open (to another stack?): what they ended is not known");
  add(faults.beyond, "events or calls beyond what can be shown of one thread: left out");
  add(faults.gaps, "blocks missing within a thread's history: calls around each gap are marked open");
}

/// Of a thread alone; what it adds to its trace goes into `all`.
ThreadCounts count_thread(const reader::Trace& trace, const reader::Calls& calls, TraceCounts& all) {
  ThreadCounts counts;
  for (const std::uint8_t marks : calls.marks) {
    if (marks == reader::kCallComplete) continue;
    const auto has = [marks](std::uint8_t mark) -> std::uint64_t { return (marks & mark) != 0 ? 1 : 0; };
    const bool counted = has(reader::kCallResumed) == 0 && has(reader::kCallInherited) == 0;
    counts.elsewhere += counted ? 0 : 1;
    counts.open_calls += reader::call_is_open(marks) && counted ? 1 : 0;
    all.unwound_calls += has(reader::kCallUnwound);
    all.jumped_calls += reader::call_is_jumped(marks) ? 1 : 0;
    all.left_calls += reader::call_is_left(marks) ? 1 : 0;
    all.tail_calls += reader::call_is_cut(marks) ? 0 : has(reader::kCallTail);
    all.cut_calls += reader::call_is_cut(marks) ? 1 : 0;
  }
  counts.calls = calls.size() - counts.elsewhere;
  counts.events = calls.events;
  counts.short_calls = calls.short_calls;
  if (calls.last_ticks > calls.first_ticks) counts.span_ns = trace.clock().to_ns(calls.last_ticks - calls.first_ticks);
  all.calls += counts.calls;
  all.open_calls += counts.open_calls;
  for (const reader::Note& note : calls.notes)
    all.notes += format::kind_of_note(note.kind).place != format::NotePlace::kCost ? 1 : 0;
  return counts;
}

bool has_patched(const reader::Process& process) {
  return std::any_of(process.modules.begin(), process.modules.end(), [](const auto& module) { return module.patched; });
}

}  // namespace

struct TraceCounter::Impl {
  const reader::Trace& trace;
  TraceCounts counts = TraceCounts::without_events(trace);
  std::set<const reader::Thread*> added = {};
  Faults faults = {};
};

TraceCounter::TraceCounter(const reader::Trace& trace) : impl_(new Impl{trace}) {}
TraceCounter::~TraceCounter() = default;

void TraceCounter::add(const reader::Thread& thread, const reader::Calls& calls) {
  if (!impl_->added.insert(&thread).second) return;
  const reader::Process& process = impl_->trace.processes()[thread.process];
  TraceCounts& counts = impl_->counts;
  counts.threads[thread.process][static_cast<std::size_t>(&thread - process.threads.data())] =
      count_thread(impl_->trace, calls, counts);
  impl_->faults.add(impl_->trace, process, calls);
}

TraceCounts TraceCounter::take(std::atomic<std::uint64_t>* done) {
  const reader::Trace& trace = impl_->trace;
  TraceCounts& counts = impl_->counts;
  counts.problems = trace.problems();
  for (const reader::Process& process : trace.processes()) {
    counts.overwritten += process.overwritten_events;
    counts.lost += process.lost_events;
    for (const reader::Thread& thread : process.threads) {
      if (impl_->added.contains(&thread)) continue;
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      add(thread, calls);
      if (done != nullptr) *done += calls.events;
    }
  }
  const std::uint64_t first = analysis::first_ticks(trace);
  const std::uint64_t last = analysis::last_ticks(trace);
  counts.span_ns = last > first ? trace.clock().to_ns(last - first) : 0;
  tell(impl_->faults, std::any_of(trace.processes().begin(), trace.processes().end(), has_patched), counts.problems);
  return std::move(counts);
}

TraceCounts count_trace(const reader::Trace& trace, std::atomic<std::uint64_t>* done) {
  return TraceCounter(trace).take(done);
}

TraceCounts TraceCounts::without_events(const reader::Trace& trace) {
  TraceCounts counts;
  for (const reader::Process& process : trace.processes()) counts.threads.emplace_back(process.threads.size());
  return counts;
}

}  // namespace karst::answers
