// SPDX-License-Identifier: MIT
#include "analysis/report.h"

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/values.h"
#include "columns/settle.h"
#include "columns/table.h"
#include "reader/column.h"

namespace karst::analysis {
namespace {

// The durations of a function's complete calls in one thread.
struct FunctionPiece {
  std::uint32_t function;
  std::span<std::uint64_t> durations;
};

}  // namespace

struct ReportBuilder::Impl {
  const reader::Trace& trace;
  Report report;
  Parts parts;
  std::vector<std::uint64_t> thread_long;  // by function
  std::vector<std::uint64_t> noting;       // by function: ticks
  columns::TableSums sums;
  std::vector<reader::Column<std::uint64_t>> store;  // what the pieces look into
  std::vector<FunctionPiece> pieces;

  CallGroups* const groups;  // null: rows are functions

  Impl(const reader::Trace& t, const FunctionSet* f, CallGroups* g) : trace(t), parts(t, f), groups(g) {
    report.of_groups = g != nullptr;
  }

  std::size_t rows() const { return groups != nullptr ? groups->size() : parts.size(); }
  bool is_wanted(std::uint32_t number) const {
    return groups != nullptr ? number != CallGroups::kOthers : parts.wanted()[number];
  }

  void add(const reader::Thread& thread, const reader::Calls& calls, const reader::ThreadStates* states) {
    if (calls.size() != 0) ++(thread.fiber ? report.fibers : report.threads);
    report.events += calls.events;
    report.out_of_order += calls.out_of_order;
    report.unmatched_exits += calls.unmatched_exits;
    report.missing_exits += calls.missing_exits;
    report.unknown_ids += calls.unknown_ids;
    report.missing_blocks += calls.missing_blocks;
    const columns::Scope::Part& all = parts.of(thread, calls, states);
    if (calls.size() == 0) return;
    const columns::Scope::Part& part = groups != nullptr ? groups->of(thread, calls, all) : all;
    sums.grow(rows());
    sums.add(part, report.has_states);
    keep_durations(part);
    count_thread_long(part, calls);
    if (groups == nullptr && calls.call_cost != 0) count_noting(part, calls);
  }

  /// A group's calls are not known by their notes alone.
  void count_noting(const columns::Scope::Part& part, const reader::Calls& calls) {
    noting.resize(rows());
    for (const reader::Note& note : calls.notes) {
      const std::uint32_t of = note.name == 0 && note.row < calls.size() ? calls.function[note.row] : note.name;
      if (of < part.function_of.size() && part.function_of[of] < noting.size())
        noting[part.function_of[of]] += ticks_of_tracing(calls, note);
    }
  }

  void count_thread_long(const columns::Scope::Part& part, const reader::Calls& calls) {
    const std::uint64_t least = (calls.last_ticks - calls.first_ticks) / 10 * 9;
    thread_long.resize(rows());
    // They are within each other, outermost first. What is called more than once is work, however long one call of it
    // took, and so is what that called.
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      if (calls.duration[row] < least || reader::call_is_open(calls.marks[row])) continue;
      if (std::count(calls.function.begin(), calls.function.end(), calls.function[row]) > 1) return;
      ++thread_long[part.function(row)];
    }
  }

  void keep_durations(const columns::Scope::Part& part) {
    std::vector<columns::Durations::Wanted> of_thread;
    for (const auto& [function, complete] : sums.latest()) {
      if (is_wanted(function) && complete != 0) of_thread.push_back({function, complete});
    }
    columns::Durations durations(of_thread, rows());
    durations.add(part);
    for (std::size_t slot = 0; slot < of_thread.size(); ++slot)
      pieces.push_back({of_thread[slot].function, durations.of(slot)});
    store.push_back(durations.take());
  }

  StateReport state_report(const reader::StateTimes& times) const {
    const reader::Clock& clock = trace.clock();
    const auto ns = [&](std::uint64_t ticks) { return static_cast<std::int64_t>(ticks) < 0 ? 0 : clock.to_ns(ticks); };
    return {ns(times.running), ns(times.runnable), ns(times.blocked), ns(times.unknown)};
  }

  FunctionReport row_of(std::uint32_t number, std::span<std::uint64_t> durations) const {
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
    if (durations.empty()) return row;
    row.min_ns = clock.to_ns(of.min);
    row.max_ns = clock.to_ns(of.max);
    row.mean_ns = ns(of.sum) / of.complete;
    const columns::Percentiles found = columns::percentiles(durations);
    row.p50_ns = clock.to_ns(found.p50);
    row.p99_ns = clock.to_ns(found.p99);
    return row;
  }

  void make_rows() {
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const FunctionPiece& a, const FunctionPiece& b) { return a.function < b.function; });
    std::vector<std::uint64_t> joined;
    auto piece = pieces.begin();
    for (std::uint32_t number = 0; number < sums.functions().size(); ++number) {
      const auto first = piece;
      while (piece != pieces.end() && piece->function == number) ++piece;
      if (!is_wanted(number) || !sums.functions()[number].seen) continue;
      if (piece - first == 1) {  // already in one place
        report.functions.push_back(row_of(number, first->durations));
        continue;
      }
      joined.clear();
      for (auto p = first; p != piece; ++p) joined.insert(joined.end(), p->durations.begin(), p->durations.end());
      report.functions.push_back(row_of(number, joined));
    }
  }
};

ReportBuilder::ReportBuilder(const reader::Trace& trace, const FunctionSet* functions, CallGroups* groups)
    : impl_(std::make_unique<Impl>(trace, functions, groups)) {}
ReportBuilder::~ReportBuilder() = default;

void ReportBuilder::add(const reader::Thread& thread, const reader::Calls& calls) {
  const reader::States& states = impl_->trace.states();
  if (states.empty()) {
    impl_->add(thread, calls, nullptr);
    return;
  }
  const std::uint32_t pid = impl_->trace.processes()[thread.process].pid;
  add(thread, calls, states.of(pid, thread.tid));
}

void ReportBuilder::add(const reader::Thread& thread, const reader::Calls& calls, const reader::ThreadStates* states) {
  impl_->report.has_states = true;
  impl_->add(thread, calls, states);
}

const Parts& ReportBuilder::parts() const { return impl_->parts; }

std::vector<std::uint64_t> ReportBuilder::durations_of(std::uint32_t number) const {
  const auto [first, last] =
      std::equal_range(impl_->pieces.begin(), impl_->pieces.end(), FunctionPiece{number, {}},
                       [](const FunctionPiece& a, const FunctionPiece& b) { return a.function < b.function; });
  std::vector<std::uint64_t> durations;
  std::size_t size = 0;
  for (auto piece = first; piece != last; ++piece) size += piece->durations.size();
  durations.reserve(size);
  reader::touch_ahead(durations.data(), size * sizeof(std::uint64_t));
  for (auto piece = first; piece != last; ++piece)
    durations.insert(durations.end(), piece->durations.begin(), piece->durations.end());
  return durations;
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
