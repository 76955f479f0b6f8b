// SPDX-License-Identifier: MIT
#include "analysis/report.h"

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/values.h"
#include "columns/duration_counts.h"
#include "columns/settle.h"
#include "columns/table.h"
#include "reader/pieces.h"

namespace karst::analysis {
namespace {

/// A call that may have lasted about as long as its thread.
struct LongCall {
  std::uint64_t piece;  // number of the piece in which it was sent
  std::uint32_t number, id;
  std::uint64_t duration;
};

/// Calls that lasted nine tenths of their thread's time, and were their function's only ones in it.
class LongCalls {
 public:
  /// Of a thread, one piece after the other.
  void add(const reader::Piece& piece, const columns::Scope::Part& part) {
    ++piece_;
    const reader::Calls& calls = piece.calls;
    reader::each_sent(piece, [&](std::uint32_t row) {
      const std::uint32_t id = calls.function[row];
      if (id >= rows_of_.size()) rows_of_.resize(id + std::size_t{1});
      ++rows_of_[id];
      const std::uint64_t duration = calls.duration[row];
      // The thread lasts at least until now.
      if (duration < most_of(calls.begin[row] + duration - calls.first_ticks)) return;
      if (!reader::call_is_open(calls.marks[row]) && found_.size() < kMost)
        found_.push_back({piece_, part.function(row), id, duration});
    });
    if (piece.end != 0) drop_shorter(most_of(calls.begin[piece.end - 1] - calls.first_ticks));
  }
  /// Behind all pieces of the thread: calls `use(number)` for each, by the number of its function.
  template <typename Use>
  void take(const reader::Calls& calls, Use&& use) {
    drop_shorter(most_of(calls.last_ticks - calls.first_ticks));
    // They are within each other, and who is sent later is outside.
    std::stable_sort(found_.begin(), found_.end(),
                     [](const LongCall& a, const LongCall& b) { return a.piece > b.piece; });
    // What is called more than once is work, however long one call of it took, and so is what that called.
    for (const LongCall& of : found_) {
      if (rows_of_[of.id] > 1) break;
      use(of.number);
    }
    found_.clear();
    std::fill(rows_of_.begin(), rows_of_.end(), 0);
    piece_ = 0;
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 16;
  static std::uint64_t most_of(std::uint64_t ticks) { return ticks / 10 * 9; }
  void drop_shorter(std::uint64_t least) {
    const auto shorter = [least](const LongCall& of) { return of.duration < least; };
    found_.erase(std::remove_if(found_.begin(), found_.end(), shorter), found_.end());
  }

  std::uint64_t piece_ = 0;
  std::vector<std::uint64_t> rows_of_;  // by id
  std::vector<LongCall> found_;
};

}  // namespace

struct ReportBuilder::Impl {
  const reader::Trace& trace;
  Report report;
  Parts parts;
  std::vector<std::uint64_t> thread_long;  // by function
  std::vector<std::uint64_t> noting;       // by function: ticks
  columns::TableSums sums;
  std::vector<columns::DurationCounts> durations;  // by function
  LongCalls long_calls;
  bool has_rows = false;  // the thread at hand

  CallGroups* const groups;  // null: rows are functions

  Impl(const reader::Trace& t, const FunctionSet* f, CallGroups* g) : trace(t), parts(t, f), groups(g) {
    report.of_groups = g != nullptr;
  }

  std::size_t rows() const { return groups != nullptr ? groups->size() : parts.size(); }
  bool is_wanted(std::uint32_t number) const {
    return groups != nullptr ? number != CallGroups::kOthers : parts.wanted()[number];
  }

  void add(const reader::Thread& thread, const reader::Piece& piece, const reader::ThreadStates* states) {
    if (piece.last) return end_thread(thread, piece.calls);
    const columns::Scope::Part& all = parts.of(thread, piece, states);
    if (piece.end == 0) return;
    has_rows = true;
    const columns::Scope::Part& part = groups != nullptr ? groups->of(thread, piece.calls, all) : all;
    sums.grow(rows());
    sums.add(part, report.has_states);
    keep_durations(part, piece);
    long_calls.add(piece, part);
    if (groups == nullptr && piece.calls.call_cost != 0) count_noting(part, piece);
  }

  void end_thread(const reader::Thread& thread, const reader::Calls& calls) {
    if (std::exchange(has_rows, false)) ++(thread.fiber ? report.fibers : report.threads);
    report.events += calls.events;
    report.out_of_order += calls.out_of_order;
    report.unmatched_exits += calls.unmatched_exits;
    report.missing_exits += calls.missing_exits;
    report.unknown_ids += calls.unknown_ids;
    report.missing_blocks += calls.missing_blocks;
    thread_long.resize(rows());
    long_calls.take(calls, [this](std::uint32_t number) { ++thread_long[number]; });
  }

  /// A group's calls are not known by their notes alone.
  void count_noting(const columns::Scope::Part& part, const reader::Piece& piece) {
    noting.resize(rows());
    const reader::Calls& calls = piece.calls;
    for (const reader::Note& note : std::span(calls.notes).first(piece.notes)) {
      const std::uint32_t of = note.name == 0 && note.row < calls.size() ? calls.function[note.row] : note.name;
      if (of < part.function_of.size() && part.function_of[of] < noting.size())
        noting[part.function_of[of]] += ticks_of_tracing(calls, note);
    }
  }

  void keep_durations(const columns::Scope::Part& part, const reader::Piece& piece) {
    durations.resize(rows());
    reader::each_sent(piece, [&](std::uint32_t row) {
      const std::uint32_t number = part.function(row);
      if (columns::is_complete(piece.calls.marks[row]) && is_wanted(number))
        durations[number].add(part.duration_of(row));
    });
  }

  StateReport state_report(const reader::StateTimes& times) const {
    const reader::Clock& clock = trace.clock();
    const auto ns = [&](std::uint64_t ticks) { return static_cast<std::int64_t>(ticks) < 0 ? 0 : clock.to_ns(ticks); };
    return {ns(times.running), ns(times.runnable), ns(times.blocked), ns(times.unknown)};
  }

  FunctionReport row_of(std::uint32_t number) const {
    const reader::Clock& clock = trace.clock();
    const columns::FunctionSums& of = sums.functions()[number];
    FunctionReport row;
    row.number = number;
    if (groups != nullptr) {
      row.name = groups->text(number);
    } else {
      const FunctionInfo& function = parts.functions().functions()[number];
      row.name = function.name;
      if (function.module >= 0) row.module = parts.functions().modules()[static_cast<std::size_t>(function.module)];
      if (function.file >= 0) row.file = parts.functions().files()[static_cast<std::size_t>(function.file)];
      row.line = function.line;
    }
    row.calls = of.calls;
    row.open_calls = of.open_calls;
    row.unwound_calls = of.unwound;
    row.jumped_calls = of.jumped;
    row.tail_calls = of.tail;
    row.left_calls = of.left;
    row.left_max_ns = clock.to_ns(of.left_most);
    row.thread_long_calls = thread_long[number];
    const auto ns = [&clock](std::uint64_t ticks) {
      return static_cast<std::int64_t>(ticks) < 0 ? 0 : clock.to_ns(ticks);
    };
    row.total_ns = ns(of.total);
    row.self_ns = ns(of.self);
    row.total_cost_ns = ns(of.cost);
    row.self_cost_ns = ns(of.self_cost);
    row.tracing_ns = clock.to_ns(of.tracing / format::kCallCostUnit + (number < noting.size() ? noting[number] : 0));
    row.total_states = state_report(of.total_states);
    row.self_states = state_report(of.self_states);
    if (durations[number].empty()) return row;
    row.min_ns = clock.to_ns(of.min);
    row.max_ns = clock.to_ns(of.max);
    row.mean_ns = ns(of.sum) / of.complete;
    const columns::Percentiles found = durations[number].percentiles();
    row.p50_ns = clock.to_ns(found.p50);
    row.p99_ns = clock.to_ns(found.p99);
    return row;
  }

  void make_rows() {
    for (std::uint32_t number = 0; number < sums.functions().size(); ++number)
      if (is_wanted(number) && sums.functions()[number].seen) report.functions.push_back(row_of(number));
  }
};

ReportBuilder::ReportBuilder(const reader::Trace& trace, const FunctionSet* functions, CallGroups* groups)
    : impl_(std::make_unique<Impl>(trace, functions, groups)) {}
ReportBuilder::~ReportBuilder() = default;

void ReportBuilder::add(const reader::Thread& thread, const reader::Calls& calls) {
  add(thread, reader::whole_piece(calls));
  add(thread, reader::last_piece(calls));
}

void ReportBuilder::add(const reader::Thread& thread, const reader::Piece& piece) {
  const reader::States& states = impl_->trace.states();
  impl_->report.has_states = impl_->report.has_states || !states.empty();
  const std::uint32_t pid = impl_->trace.processes()[thread.process].pid;
  impl_->add(thread, piece, states.empty() ? nullptr : states.of(pid, thread.tid));
}

void ReportBuilder::add(const reader::Thread& thread, const reader::Calls& calls, const reader::ThreadStates* states) {
  impl_->report.has_states = true;
  impl_->add(thread, reader::whole_piece(calls), states);
  impl_->add(thread, reader::last_piece(calls), states);
}

const Parts& ReportBuilder::parts() const { return impl_->parts; }

std::vector<std::uint64_t> ReportBuilder::durations_of(std::uint32_t number) const {
  return number < impl_->durations.size() ? impl_->durations[number].values() : std::vector<std::uint64_t>();
}

Report ReportBuilder::finish() {
  impl_->make_rows();
  Report report = std::move(impl_->report);
  std::uint64_t self = 0;
  for (const columns::FunctionSums& of : impl_->sums.functions()) {
    report.calls += of.calls;
    self += columns::at_least_0(of.self);
  }
  report.self_ns = impl_->trace.clock().to_ns(self);
  const std::uint64_t first = first_ticks(impl_->trace);
  const std::uint64_t last = last_ticks(impl_->trace);
  report.span_ns = last > first ? impl_->trace.clock().to_ns(last - first) : 0;
  return report;
}

void sort_by_name(Report& report) {
  const auto before = [&](const FunctionReport& a, const FunctionReport& b) {
    if (report.of_groups) {  // numbers before other texts
      constexpr double kLast = std::numeric_limits<double>::infinity();
      const double number_a = number_in(a.name).value_or(kLast), number_b = number_in(b.name).value_or(kLast);
      if (number_a != number_b) return number_a < number_b;
    }
    return std::tie(a.name, a.module, a.file, a.line) < std::tie(b.name, b.module, b.file, b.line);
  };
  std::sort(report.functions.begin(), report.functions.end(), before);
}

void sort_by_total(Report& report) {
  sort_by_name(report);
  std::stable_sort(report.functions.begin(), report.functions.end(),
                   [](const FunctionReport& a, const FunctionReport& b) { return a.total_ns > b.total_ns; });
}

}  // namespace karst::analysis
