// SPDX-License-Identifier: MIT
// Calls that took far longer than their function usually does, wherever they are in a trace.
//
// usual    the median of a function's complete calls; of a recursion the outermost alone. Known from ten calls on
// outlier  a call of at least three times the usual, that is inside no other outlier. Where times are without the
//          tracer's cost, more than that may be wrong by
// excess   what an outlier took beyond the usual: outliers are ranked by it
// path     from an outlier down, by the callee of greatest excess, while a callee has at least half of its excess. What
//          usually takes longer than the outlier's function does not belong to its usual calls: all of it is excess
// cause    the function that the path ends in: a function may be slow for several
//
// rare     a function of fewer calls has no usual time, so none of them is an outlier. How long its longest is without
//          its callees is known. What threads begin with (main) does not count: it is as long as they are
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "analysis/kept_off.h"
#include "analysis/locks.h"
#include "analysis/selection.h"
#include "analysis/tree.h"
#include "analysis/waits.h"
#include "columns/columns.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

struct Outlier {
  CallRef call;
  std::uint32_t function = 0;  ///< id in the thread's process
  std::uint32_t number = 0;    ///< the function's among all of the trace: the same in each process
  std::uint32_t cause = 0;     ///< such a number; its own where the path has no callee
  std::uint64_t usual = 0;     ///< ticks
  std::uint64_t excess() const { return call.duration - usual; }
};

/// A function that is called too few times to have a usual time.
struct RareFunction {
  Outlier longest;  ///< its call that is longest by itself: that is the excess
  std::uint64_t calls = 0;
};

/// Finds outliers in two passes over all threads, in any order: learn(), then find(). `trace` and `functions` must
/// outlive it. Memory: 8 bytes a complete call between the passes, and `most` outliers. Use from one thread.
class OutlierFinder {
 public:
  /// Only calls of `functions` when it is not null, and of at least `min_ticks`. Keeps the `most` of greatest excess.
  OutlierFinder(const reader::Trace& trace, const FunctionSet* functions, std::uint64_t min_ticks, std::size_t most);
  ~OutlierFinder();
  OutlierFinder(OutlierFinder&&) = delete;

  void learn(const reader::Thread& thread, const columns::CallColumns& calls);
  void find(const reader::Thread& thread, const columns::CallColumns& calls);
  void learn(const reader::Thread& thread, const reader::Calls& calls) { learn(thread, columns::CallColumns(calls)); }
  void find(const reader::Thread& thread, const reader::Calls& calls) { find(thread, columns::CallColumns(calls)); }
  /// The greatest excess first; of equals the earlier. Call once.
  std::vector<Outlier> take();
  /// Of those whose longest call took `least` ticks by itself or more, the longest `most`. They are inside no outlier.
  /// Functions that sleep or wait for work are not among them, unless no other one is.
  std::vector<RareFunction> rare(std::uint64_t least, std::size_t most) const;
  /// After learn(): whether any function has a usual time.
  bool knows_any();
  /// Outliers that find() met, also those that were not kept.
  std::uint64_t found() const;
  /// After learn(): ticks; 0 when it is not known.
  std::uint64_t usual_of(std::uint32_t process, std::uint32_t id);

  /// The rows below `row` on the way to where most of its excess is, from its callee on.
  std::vector<std::uint32_t> path_below(const reader::Thread& thread, const columns::CallColumns& calls,
                                        std::uint32_t row);
  std::vector<std::uint32_t> path_below(const reader::Thread& thread, const reader::Calls& calls, std::uint32_t row) {
    return path_below(thread, columns::CallColumns(calls), row);
  }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What the thread of an outlier did during it, without the tracer's cost. `states`: of that thread.
reader::StateTimes states_of(const Outlier& outlier, const reader::ThreadStates& states);

/// Outliers of one function with one cause, or one of them.
struct OutlierGroup {
  Outlier worst;
  std::uint64_t calls = 0;
  std::uint64_t duration = 0;  ///< ticks, of all
};
/// What a finder is asked to keep, so that its outliers can be added up.
inline constexpr std::size_t kMostOutliers = 100'000;
/// One for each function and cause, in the order that the finder has them, or with `each` one for each outlier.
std::vector<OutlierGroup> group_outliers(const std::vector<Outlier>& outliers, bool each);

/// The longest wait of an outlier's thread during it; null: none, or not known.
using WaitOf = std::function<const Wait*(const Outlier&)>;
/// Puts those last in which a thread slept as it was told to, or waited for work: a call of usleep() or poll(), a
/// function whose own time is a wait in poll(), what stands for a suspended fiber. A function that calls such a one is
/// not among them: its caller waits for it.
void put_idle_last(std::vector<OutlierGroup>& groups, const reader::Trace& trace, const WaitOf& wait_of);

/// What another thread did while one waited for it.
struct ChainLink {
  const reader::Thread* thread = nullptr;
  std::uint64_t begin = 0, end = 0;      ///< of the wait that it ended, in ticks
  std::vector<std::uint32_t> functions;  ///< ids, outermost first: each call takes at least half of that time
  Wait wait;                             ///< its own longest one in that time
  bool waited = false;                   ///< whether `wait` is at least three tenths of that time
};

/// Who made a thread wait, who made that one wait, and so on: from `wait`, of `waiter`, through the wakers; where one
/// is not known, through who had the lock that was waited for. From a wait for a CPU through the thread that had it for
/// half of that time or more, if `kept_off` is given. Ends where nobody is known, nothing was waited for, or after
/// eight. `waits`: null if there are no thread states.
std::vector<ChainLink> follow_waits(const Waits* waits, LockWaitFinder& locks, const KeptOffFinder* kept_off,
                                    const reader::Thread& waiter, const Wait& wait, const CallsOf& calls_of);

/// The longest of `waits` in [begin, end), by what of it lies inside; null: there is none.
const Wait* longest_wait(const std::vector<Wait>& waits, std::uint64_t begin, std::uint64_t end);

}  // namespace karst::analysis
