// SPDX-License-Identifier: MIT
// Reads a trace's threads into an index, on all processors. In what order: what somebody looks at goes first, else the
// longest, so that none is left alone at the end. A thread that is most of the trace is shown in parts meanwhile, which
// are made beside it by processors that have nothing else to do.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/index/index.h"

namespace karst::engine {

/// Good for one run(), or for steps and a finish().
class IndexBuilder {
 public:
  /// `index` has its threads listed, and its strips. `preview`: null, nobody looks on.
  IndexBuilder(TraceIndex& index, IndexProgress& progress, Preview* preview);
  /// All of it, on all processors. Error: memory is out, or `progress.stop`.
  Status run();
  /// Reads one more thread, or a part of one; false: there is none left. Any thread may help.
  bool step();
  /// When there is no step left. Errors as of run().
  Status finish();

 private:
  /// What becomes of a thread that is shown in parts.
  static constexpr std::size_t kPartOf[] = {16, 4};  // the first sixteenth, the first fourth, then all
  struct Progress {
    std::uint64_t events = 0;
    bool taken = false;
    std::size_t parts = 0;           // of kPartOf that were taken
    std::atomic<bool> done = false;  // parts of it are of no use any more
  };
  struct Job {
    std::size_t thread;
    std::size_t part;  // of kPartOf; behind its end: the whole
  };

  std::optional<Job> next();
  std::optional<Job> job_of(std::size_t thread, bool looked_at);
  bool is_long(std::size_t thread) const;
  void work();
  void read(std::size_t thread);
  void read_part(const Job& job);
  void count_calls(const ThreadIndex& thread);

  TraceIndex& index_;
  IndexProgress& progress_;
  Preview* preview_;
  std::vector<Progress> threads_;
  std::vector<std::size_t> order_;  // the longest first
  std::mutex taking_;               // of `taken` and `parts`
  std::mutex mutex_;                // of the index's counts and of what follows
  bool out_of_memory_ = false;
};

/// An index built by one thread that has other things to do in between, as a page's has.
class IndexBuild {
 public:
  /// `progress` must outlive it.
  IndexBuild(reader::Trace trace, IndexProgress& progress);
  bool step() { return builder_.step(); }
  /// When there is no step left, once.
  Result<std::unique_ptr<TraceIndex>> finish();

 private:
  std::unique_ptr<TraceIndex> index_;
  IndexBuilder builder_;
};

}  // namespace karst::engine
