// SPDX-License-Identifier: MIT
// Time by function: how often, how long in all and alone, and how the durations spread.
//
//   total  time with the function on the stack; of recursive calls only the outermost counts
//   self   time in its calls minus that of the traced calls they made
//
// The same function in several processes, and several copies of it in one module, make one row: a function is what its
// module's path, its name and its place in the source say. Calls marked open count in `calls`, and what is known of
// their time in `total` and `self`; they have no duration to speak of, so min, mean, percentiles and max
// are over the complete calls alone.
//
// Where the trace has thread states, both times are also told apart by them: on a CPU, runnable (could run, had none),
// blocked, and not known; the four add up to the time. A thread without states counts as not known.
//
// Percentiles are exact, by the nearest rank: p99 is the shortest duration that at least 99% of the calls
// don't exceed. So all durations are kept, as columns/duration_counts.h does it: 8 bytes a call at most, and 8 MiB for
// all calls of a function below half a millisecond.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/call_groups.h"
#include "analysis/parts.h"
#include "analysis/selection.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

/// A time by what the thread was doing, in ns. Together they are the time, but for rounding.
struct StateReport {
  std::uint64_t cpu_ns = 0;
  std::uint64_t runnable_ns = 0;
  std::uint64_t blocked_ns = 0;
  std::uint64_t unknown_ns = 0;
};

struct FunctionReport {
  std::uint32_t number = 0;  ///< in ReportBuilder::parts()
  std::string name;          ///< demangled; of a group of calls, its value
  std::string module;        ///< path; empty: not known
  std::string file;          ///< empty: not known
  std::uint32_t line = 0;
  std::uint64_t calls = 0;
  std::uint64_t open_calls = 0;     ///< those of `calls` with a begin or an end that is not known
  std::uint64_t unwound_calls = 0;  ///< those of `calls` that an exception or a forced unwind ended
  std::uint64_t jumped_calls = 0;   ///< ... that a longjmp ended
  std::uint64_t tail_calls = 0;     ///< ... that ended with a tail call
  std::uint64_t left_calls = 0;     ///< of these those that were left by its jump, and may have lasted longer
  std::uint64_t left_max_ns = 0;    ///< ... than they did: at most so long (columns/left.h)
  /// Those of the complete ones that lasted nine tenths of their thread's time or more and were their function's only
  /// ones in it, and so were those that they are within: as `main` and what a thread starts with are.
  std::uint64_t thread_long_calls = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t self_ns = 0;
  std::uint64_t total_cost_ns = 0;  ///< the tracer's, which was taken out of total_ns
  std::uint64_t self_cost_ns = 0;   ///< ... of self_ns
  std::uint64_t tracing_ns = 0;  ///< what its own events and values cost: a part in its time, the rest in its callers'
  StateReport total_states;      ///< of total_ns; all 0 when the trace has no states, as the next
  StateReport self_states;       ///< of self_ns
  std::uint64_t min_ns = 0;      ///< this and the rest: 0 when no call is complete
  std::uint64_t mean_ns = 0;
  std::uint64_t p50_ns = 0;
  std::uint64_t p99_ns = 0;
  std::uint64_t max_ns = 0;

  /// Whether all its complete calls lasted as long as their thread: what runs a thread is no long call.
  bool runs_its_thread() const { return thread_long_calls != 0 && thread_long_calls + open_calls == calls; }
};

struct Report {
  std::vector<FunctionReport> functions;  ///< only functions that were called; in no order of use
  std::uint64_t threads = 0;              ///< that made calls
  std::uint64_t fibers = 0;               ///< the same
  std::uint64_t calls = 0;                ///< of all functions, also of those that were not asked for
  std::uint64_t events = 0;
  std::uint64_t span_ns = 0;  ///< from the first to the last event
  std::uint64_t self_ns = 0;  ///< in calls of all functions, also of those that were not asked for
  bool has_states = false;
  bool of_groups = false;
  std::uint64_t out_of_order = 0, unmatched_exits = 0, missing_exits = 0, unknown_ids = 0, missing_blocks = 0;
};

/// Adds up a trace, one thread at a time; `trace` must outlive it. Use from one thread at a time.
class ReportBuilder {
 public:
  /// Reports only on `functions` when it is not null; it must outlive the builder.
  /// With `groups`, which then says which calls are asked for, rows are groups of calls.
  explicit ReportBuilder(const reader::Trace& trace, const FunctionSet* functions = nullptr,
                         CallGroups* groups = nullptr);
  ~ReportBuilder();
  ReportBuilder(ReportBuilder&&) = delete;

  void add(const reader::Thread& thread, const reader::Calls& calls);
  /// The next piece of a thread's calls, up to the last one; without groups.
  void add(const reader::Thread& thread, const reader::Piece& piece);
  /// All of a thread's with these states in the trace's stead; null: nothing is known of this thread's.
  void add(const reader::Thread& thread, const reader::Calls& calls, const reader::ThreadStates* states);
  /// The functions, and the thread that was added last as columns/ takes it, for what is added up beside the report.
  const Parts& parts() const;
  /// Call once.
  Report finish();
  /// Durations, in ticks, of all complete calls of a function that was asked for, in no order. After finish().
  std::vector<std::uint64_t> durations_of(std::uint32_t number) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Values that are numbers by these, and before other texts; equals by their place.
void sort_by_name(Report& report);
/// Greatest first; equals by name, so that the order is the same every time.
void sort_by_total(Report& report);

}  // namespace karst::analysis
