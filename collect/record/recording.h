// SPDX-License-Identifier: MIT
// From the arenas of a run to its trace file: a Recording takes processes, drains their events, and is finished.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/record/history.h"
#include "collect/record/open_calls.h"
#include "reader/model.h"
#include "reader/samples.h"
#include "reader/usage.h"
#include "symbols/resolve.h"
#include "write/trace_writer.h"

namespace karst::collect {

/// One process image of the run and what was seen of it from outside.
struct RecordedProcess {
  History history;
  std::int32_t wait_status = -1;  ///< as waitpid gives it; -1: not known
  std::uint64_t end_ticks = 0;    ///< when it was seen to have ended; 0: it had not
  bool forked = false;            ///< a child by fork: its functions are its parent's, with the same ids
  std::int64_t parent = -1;       ///< index of the process that it came from, an earlier one; -1: not in this run
  std::vector<reader::Moment> moments{};  ///< kept while it ran; numbered when they are written
  OpenCalls inherited{};                  ///< forked: what its first thread had open when it began
};

struct RecordingOptions {
  bool source = true;  ///< keep the text of the source files
  symbols::ResolveOptions resolve;
  std::atomic<std::uint64_t>* done = nullptr;  ///< grows to work_of() as the trace is written; may be null
  const reader::StateLog* states = nullptr;    ///< goes into the trace; may be null
  reader::SampleLog* samples = nullptr;        ///< the same; its functions get their names
  const reader::UsageLog* usage = nullptr;     ///< goes into the trace; may be null
  /// Only what happened from `from` to `to`, in ticks; calls that were open at `from` are marked as begun before.
  std::uint64_t from = 0;
  std::uint64_t to = ~std::uint64_t{0};
  std::string moment{};  ///< not empty: the trace is a snapshot of that range, asked for by this
  std::vector<reader::UntracedProgram> untraced{};  ///< goes into the trace
  std::filesystem::path program{};                  ///< where the executable is now; empty: where it was
  bool clock_is_ours = true;        ///< the processes' clock is the one that we read: its rate is what the kernel says
  bool names = true;                ///< look up names and sources; else the trace is a raw one
  bool raw_events = false;          ///< put events down as they are, rather than packed
  bool uncalled = false;            ///< keep all functions of programs that were patched, also those never called
  std::function<void()> on_kept{};  ///< called when all events are safe; may be empty
};

/// What was written, for the summary line.
struct RecordingSummary {
  std::size_t processes = 0;
  std::size_t threads = 0;        ///< with events
  std::uint64_t calls = 0;        ///< kept, those cut at either end included
  bool calls_are_about = false;   ///< functions were switched meanwhile: readers leave out ends of calls that fit none
  std::uint64_t notes = 0;        ///< kept
  std::uint64_t events = 0;       ///< kept
  std::uint64_t overwritten = 0;  ///< events recycled because memory was full
  std::uint64_t lost = 0;         ///< events that no block could be had for
  bool has_moments = false;       ///< kept ones are in the trace
  std::uint64_t tracing_ns = 0;   ///< what tracing cost, as far as the processes know; also of overwritten calls
  std::uint64_t span_ns = 0;      ///< from the first kept event to the last
  std::vector<reader::Problem> problems;
};

/// How much there is to write, in the unit of RecordingOptions::done: a function named, a block written.
std::uint64_t work_of(const std::vector<RecordedProcess>& processes);

/// A trace in the making. Call add() for each process, then drain(), then finish(), from one thread.
class Recording {
 public:
  /// Both must outlive it.
  Recording(const RecordingOptions& options, writing::TraceWriter& writer);
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) = delete;
  ~Recording();

  /// What the process came from was added before it, if it is in the trace.
  void add(RecordedProcess process);
  /// Writes all events, as a raw trace that is safe from here on. `pairs`: readings of the clocks beside those of the
  /// processes. Error: the events could not be kept.
  Status drain(std::vector<ClockPair> pairs);
  /// Looks up names and sources and writes them. What could not be is among the summary's problems.
  RecordingSummary finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// All three steps.
Result<RecordingSummary> record(std::vector<RecordedProcess> processes, std::vector<ClockPair> pairs,
                                const RecordingOptions& options, writing::TraceWriter& writer);

}  // namespace karst::collect
