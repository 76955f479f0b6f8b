// SPDX-License-Identifier: MIT
// A trace made ready for looking at: the calls of all threads rebuilt, put in order, and their lanes built.
//
// Memory: the columns (27 bytes a call) and about 6.2 bytes a call for the lanes.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/function_list.h"
#include "analysis/tracing_cost.h"
#include "analysis/wait_stacks.h"
#include "base/result.h"
#include "engine/columns.h"
#include "engine/index/known_trace.h"
#include "engine/index/lanes.h"
#include "engine/index/late.h"
#include "engine/index/strips.h"
#include "format/note.h"
#include "reader/trace.h"

namespace karst::engine {

using analysis::FunctionInfo;
using analysis::FunctionList;

/// A stretch of a thread's time of which the trace has no events.
struct Gap {
  std::uint64_t begin = 0;  ///< ticks
  std::uint64_t end = 0;
  std::uint64_t blocks = 0;  ///< 0: not known
  bool overwritten = false;  ///< history before the kept one; else blocks missing in between
};

/// Copies look at the same columns.
struct ThreadIndex : columns::ThreadCalls {
  const reader::Thread* thread = nullptr;
  Lanes lanes;
  std::vector<Gap> gaps;  ///< in order of begin; the longest kMaxGaps
  std::uint64_t gap_count = 0;
  std::uint64_t first_ticks = 0;  ///< kept history
  std::uint64_t last_ticks = 0;
  std::uint64_t events = 0, out_of_order = 0, unmatched_exits = 0, missing_exits = 0, unknown_ids = 0;

  /// How many there are of each kind; in the first place those of kinds that are not known.
  std::array<std::uint64_t, format::kLastNoteKind + 1> notes{};
  bool has_notes(format::NoteKind kind) const { return notes[static_cast<std::size_t>(kind)] != 0; }
  /// Those that stand among calls (format/note_kinds.h).
  std::uint64_t listed_notes() const {
    std::uint64_t count = 0;
    for (std::uint32_t kind = 0; kind < notes.size(); ++kind)
      if (format::kind_of_note(kind).is_listed()) count += notes[kind];
    return count;
  }

  /// What tracing took of its calls beside their events.
  std::span<const analysis::NotedCost> noted_costs;

  std::shared_ptr<const reader::Calls> owned;                           ///< what `calls` views; null: a mapped file's
  std::shared_ptr<const std::vector<analysis::NotedCost>> owned_costs;  ///< what `noted_costs` views, likewise

  std::shared_ptr<const Strip> of_states;  ///< null: nothing is known of them

  std::shared_ptr<const Strip> of_samples;  ///< null: it was not sampled, or is not read yet

  /// Levels of its calls, and of what was sampled below them.
  std::uint32_t levels() const {
    const auto calls_levels = static_cast<std::uint32_t>(lanes.depths());
    return of_samples == nullptr ? calls_levels
                                 : std::max(calls_levels, static_cast<std::uint32_t>(of_samples->lanes.depths()));
  }

  /// Of a preview: from this time on its calls are not there yet. first_ticks: none is.
  std::uint64_t unread_from = kAllRead;
  static constexpr std::uint64_t kAllRead = std::numeric_limits<std::uint64_t>::max();
  bool is_read() const { return unread_from == kAllRead; }

  /// Of its states; an empty one when nothing is known of them.
  const Strip& strip() const;
};

/// What is being done, for whoever looks on from another thread.
struct IndexProgress {
  std::atomic<std::uint64_t> done = 0;         ///< events
  std::atomic<std::uint64_t> total = 0;        ///< 0: not known yet
  std::atomic<std::uint64_t>* also = nullptr;  ///< counts `done` too
  std::atomic<bool> stop = false;              ///< set it to give up
};

class IndexCache;
class Preview;
/// Immutable once built, but for what is made late; any thread may read it.
class TraceIndex {
 public:
  /// Opens `path` and builds everything on all processors. Error: the trace cannot be read, memory is out, or
  /// `progress.stop`.
  /// With a `cache`, from there when it has this file. With a `preview`, whoever has it sees what is there already.
  static Result<std::unique_ptr<TraceIndex>> build(const std::filesystem::path& path, IndexProgress& progress,
                                                   const IndexCache* cache = nullptr, Preview* preview = nullptr);
  /// The same for a trace that is open.
  static Result<std::unique_ptr<TraceIndex>> build(reader::Trace trace, IndexProgress& progress,
                                                   Preview* preview = nullptr);

  /// Of one of which something was left out (reader::Trace::leave_out()); times count from `origin`, as before that.
  static Result<std::unique_ptr<TraceIndex>> build_part(reader::Trace trace, std::uint64_t origin,
                                                        IndexProgress& progress);

  bool from_cache() const { return mapping_ != nullptr; }
  /// Whether it is a preview's: threads with calls that are not there yet, no CPUs.
  bool is_partial() const { return partial_; }

  const reader::Trace& trace() const { return *trace_; }
  /// In the file's order: by process, then by when they joined it.
  const std::vector<ThreadIndex>& threads() const { return threads_; }
  /// All of the trace's table; those that occur are marked. A preview has them under the same numbers.
  const FunctionList& functions() const { return functions_; }
  /// By CPU, in the order of States::cpus(); empty when there are no states.
  const std::vector<Strip>& cpus() const { return cpus_; }
  /// Thread of the index that a task of States::tasks is, as far as it made calls; -1: none.
  std::int64_t thread_of_task(std::uint32_t task) const {
    return task < thread_of_task_.size() ? thread_of_task_[task] : -1;
  }
  /// As analysis/report.h counts.
  std::uint64_t calls() const { return calls_; }
  std::uint64_t origin() const { return origin_; }  ///< ticks of the first event; ns in the protocol count from here
  std::uint64_t last_ticks() const { return last_; }

  /// Of a page that holds a part of a trace, cut out of it.
  struct Part {
    std::uint64_t origin = 0;  ///< of the whole, in ticks: the page has the whole's times
    TickRange range;           ///< what questions are about that name no range
  };
  /// Before anybody else looks.
  void set_part(const Part& part) {
    part_ = part;
    origin_ = part.origin;
  }
  const std::optional<Part>& part() const { return part_; }

  /// Null where nothing was sampled, or not all is read yet.
  const analysis::WaitStacks* wait_stacks() const { return wait_stacks_.get(); }

  /// What was made late. Null: nobody asked for it yet.
  template <typename Of>
  std::shared_ptr<const Of> made() const {
    return late_.find<Of>();
  }
  /// The same; `Of::make(index, work)` makes what is not there. Null: `work` was stopped.
  template <typename Of>
  std::shared_ptr<const Of> make(Work* work) const {
    return late_.find_or_make<Of>([&] { return Of::make(*this, work); });
  }

  /// Ticks since origin() for ns since the trace's start, and back.
  double to_ticks(double ns) const { return ns * static_cast<double>(trace_->clock().ticks_per_second) / 1e9; }
  double to_ns(double ticks) const { return ticks * 1e9 / static_cast<double>(trace_->clock().ticks_per_second); }
  /// Of an absolute time.
  double since_origin(std::uint64_t ticks) const {
    return ticks >= origin_ ? to_ns(static_cast<double>(ticks - origin_))
                            : -to_ns(static_cast<double>(origin_ - ticks));
  }
  std::uint32_t function_of(const ThreadIndex& thread, std::size_t row) const {
    return functions_.of(thread.thread->process, thread.calls.function[row]);
  }

 private:
  explicit TraceIndex(std::shared_ptr<const reader::Trace> trace) : trace_(std::move(trace)) {}
  friend class IndexBuild;
  friend class IndexBuilder;
  friend class IndexCache;
  friend class Preview;
  static Result<std::unique_ptr<TraceIndex>> build_of(std::unique_ptr<TraceIndex> index, IndexProgress& progress,
                                                      Preview* preview);
  static std::unique_ptr<TraceIndex> prepared(reader::Trace trace, IndexProgress& progress);
  static std::unique_ptr<TraceIndex> listed(reader::Trace trace, IndexProgress& progress);
  static std::unique_ptr<TraceIndex> listed(std::shared_ptr<const reader::Trace> trace, IndexProgress& progress);
  void build_strips();
  void build_sample_strips();
  void sum_up();

  std::shared_ptr<const reader::Trace> trace_;
  KnownTrace known_;
  bool partial_ = false;
  std::shared_ptr<const void> mapping_;  // what the columns lie in when they came from a cache
  std::vector<ThreadIndex> threads_;
  std::vector<std::vector<std::uint64_t>> counts_;  // by process and id: 0 when it has no row, else its calls and 1
  FunctionList functions_;
  std::vector<Strip> cpus_;
  std::vector<std::int64_t> thread_of_task_;
  std::unique_ptr<const analysis::WaitStacks> wait_stacks_;
  std::uint64_t calls_ = 0;
  std::uint64_t origin_ = 0;
  std::uint64_t last_ = 0;
  std::optional<Part> part_;
  mutable LateParts late_;
};

/// Runs `work(i)` for i below `count` on as many threads as there are processors. What one of them throws is thrown
/// here, when the others have ended; what was not begun by then is left out.
void run_parallel(std::size_t count, const std::function<void(std::size_t)>& work);
/// The same for the engine.
columns::Workers all_processors();

}  // namespace karst::engine
