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
#include "reader/pieces.h"

namespace karst::answers {
namespace {

using CallsByName = std::map<std::string, std::uint64_t>;

/// Counts calls of a thread that have no end though their caller has one, by the ids of their functions.
class Unended {
 public:
  using Counts = std::map<std::uint32_t, std::uint64_t>;

  void add(const reader::Piece& piece) {
    const reader::Calls& calls = piece.calls;
    std::vector<Counts> before = std::exchange(waiting_, std::vector<Counts>(piece.open.size()));
    const auto is_ended = [&](std::size_t row) { return (calls.marks[row] & reader::kCallOpenEnd) == 0; };
    // Of callers that are open yet it is told later.
    const auto counts_in = [&](std::uint32_t caller) -> Counts* {
      const auto at = std::lower_bound(piece.open.begin(), piece.open.end(), caller);
      if (at != piece.open.end() && *at == caller) return &waiting_[static_cast<std::size_t>(at - piece.open.begin())];
      return is_ended(caller) ? &counts_ : nullptr;
    };
    for (std::uint32_t row = 0; row < before.size() && row < piece.end; ++row)
      if (Counts* to = before[row].empty() ? nullptr : counts_in(row); to != nullptr)
        for (const auto& [id, count] : before[row]) (*to)[id] += count;
    reader::each_sent(piece, [&](std::uint32_t row) {
      const std::uint8_t marks = calls.marks[row];
      if (is_ended(row) || (marks & reader::kCallSwitched) != 0 || reader::call_is_cut(marks)) return;
      if (calls.parent[row] == reader::kNoParent) return;
      if (Counts* to = counts_in(calls.parent[row]); to != nullptr) ++(*to)[calls.function[row]];
    });
  }
  /// Of all pieces of the thread.
  Counts take() { return std::exchange(counts_, {}); }

 private:
  Counts counts_;
  std::vector<Counts> waiting_;  // for the ends of calls that are open
};

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

  void add(const reader::Trace& trace, const reader::Process& process, const reader::Calls& calls,
           const Unended::Counts& of_ids) {
    out_of_order += calls.out_of_order;
    unmatched += calls.unmatched_exits;
    missing += calls.missing_exits;
    if (calls.missing_exits != 0)
      for (const auto& [id, count] : of_ids) unended[trace.function(process, id).name] += count;
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

/// Of a piece of a thread; what it adds to its trace goes into `all`.
void count_piece(const reader::Piece& piece, ThreadCounts& counts, TraceCounts& all) {
  ThreadCounts these;
  reader::each_sent(piece, [&](std::uint32_t row) {
    ++these.calls;
    const std::uint8_t marks = piece.calls.marks[row];
    if (marks == reader::kCallComplete) return;
    const auto has = [marks](std::uint8_t mark) -> std::uint64_t { return (marks & mark) != 0 ? 1 : 0; };
    const bool counted = has(reader::kCallResumed) == 0 && has(reader::kCallInherited) == 0;
    these.elsewhere += counted ? 0 : 1;
    these.open_calls += reader::call_is_open(marks) && counted ? 1 : 0;
    all.unwound_calls += has(reader::kCallUnwound);
    all.jumped_calls += reader::call_is_jumped(marks) ? 1 : 0;
    all.left_calls += reader::call_is_left(marks) ? 1 : 0;
    all.tail_calls += reader::call_is_cut(marks) ? 0 : has(reader::kCallTail);
    all.cut_calls += reader::call_is_cut(marks) ? 1 : 0;
  });
  these.calls -= these.elsewhere;
  counts.calls += these.calls;
  counts.open_calls += these.open_calls;
  counts.elsewhere += these.elsewhere;
  all.calls += these.calls;
  all.open_calls += these.open_calls;
  for (std::size_t i = 0; i < piece.notes; ++i)
    all.notes += format::kind_of_note(piece.calls.notes[i].kind).place != format::NotePlace::kCost ? 1 : 0;
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
  Unended unended = {};  // of the thread at hand

  void add(const reader::Thread& thread, const reader::Piece& piece);
};

TraceCounter::TraceCounter(const reader::Trace& trace) : impl_(new Impl{trace}) {}
TraceCounter::~TraceCounter() = default;

void TraceCounter::Impl::add(const reader::Thread& thread, const reader::Piece& piece) {
  const reader::Process& process = trace.processes()[thread.process];
  ThreadCounts& of_thread = counts.threads[thread.process][static_cast<std::size_t>(&thread - process.threads.data())];
  const reader::Calls& calls = piece.calls;
  if (!piece.last) {
    count_piece(piece, of_thread, counts);
    unended.add(piece);
    return;
  }
  of_thread.events = calls.events;
  of_thread.short_calls = calls.short_calls;
  if (calls.last_ticks > calls.first_ticks)
    of_thread.span_ns = trace.clock().to_ns(calls.last_ticks - calls.first_ticks);
  faults.add(trace, process, calls, unended.take());
}

void TraceCounter::add(const reader::Thread& thread, const reader::Calls& calls) {
  if (!impl_->added.insert(&thread).second) return;
  impl_->add(thread, reader::whole_piece(calls));
  impl_->add(thread, reader::last_piece(calls));
}

TraceCounts TraceCounter::take(std::atomic<std::uint64_t>* done) {
  const reader::Trace& trace = impl_->trace;
  TraceCounts& counts = impl_->counts;
  counts.problems = trace.problems();
  reader::PieceOptions options;
  options.is_tree = false;
  options.done = done;
  reader::Calls used;
  for (const reader::Process& process : trace.processes()) {
    counts.overwritten += process.overwritten_events;
    counts.lost += process.lost_events;
    for (const reader::Thread& thread : process.threads) {
      if (impl_->added.contains(&thread)) continue;
      const auto add = [&](const reader::Piece& piece, reader::Calls&) { impl_->add(thread, piece); };
      used = reader::each_piece(trace, thread, options, add, std::move(used));
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
