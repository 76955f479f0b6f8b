// SPDX-License-Identifier: MIT
// Why a call took longer than its siblings: the other complete calls of its function, of a recursion the outermost.
//
// usual    the median of the siblings' durations
// typical  at most 101 siblings whose durations are nearest to the median; the call is compared with their mean
// path     the functions from the call down. Calls of one function below one path are grouped, in order of first call
// excess   the call's duration less the usual one
// cause    a path, what was different there, and how much of the excess it is
//
// How the excess is told apart: walk down both trees at once. Where a path is called more times than its caller's calls
// explain, that many typical calls are one cause. Time in the path itself beyond that is another, by thread states
// where there are any. A path without a counterpart is a cause with all below it. So causes add up to the difference
// between the call and the typical ones, exactly; the difference between those and the median is part of the rest.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/function_list.h"
#include "analysis/selection.h"
#include "analysis/tree.h"
#include "analysis/value_hints.h"
#include "analysis/waits.h"
#include "columns/columns.h"
#include "reader/trace.h"

namespace karst::analysis {

enum class CauseKind {
  kOwnTime,    ///< longer in the function itself; nothing is known of what the thread did
  kComputing,  ///< longer on a CPU
  kWaiting,    ///< longer blocked
  kRunnable,   ///< longer without a CPU
  kUnknown,    ///< longer in states that were not recorded
  kMoreCalls,  ///< called more often than in typical calls
  kFewerCalls,
  kNew,      ///< in no typical call
  kMissing,  ///< in typical calls, but not in this one
};

struct Cause {
  CauseKind kind = CauseKind::kOwnTime;
  std::vector<std::uint32_t> path;  ///< numbers of functions (Explainer::functions()) below the call, outermost first
  double ticks = 0;                 ///< of the excess; below 0 where the call was faster
  std::uint64_t calls = 0;          ///< of the path in this call
  double usual_calls = 0;           ///< in a typical one
  /// Page faults in user code, where the trace tells of them; of kComputing in the path itself, of kNew in all of it.
  double faults = 0;
  double usual_faults = 0;          ///< in a typical call
  std::optional<Wait> wait;         ///< the longest in the path; of kWaiting, kRunnable and kNew
  std::vector<ValueHint> values{};  ///< of a great cause: what calls on its path were given that is not usual
};

struct Explanation {
  std::uint64_t duration = 0;  ///< ticks, as all times
  std::uint64_t siblings = 0;
  std::uint64_t typical = 0;  ///< siblings that it was compared with; 0: nothing below is known
  std::uint64_t usual = 0;
  bool stands_out = false;    ///< it took longer than siblings differ among each other
  bool first = false;         ///< no sibling began earlier
  std::uint64_t most = 0;     ///< left by a tail call (columns/left.h): it can have lasted so long; 0: its end is known
  std::vector<Cause> causes;  ///< by falling share of the excess; those below 1% of it are in the rest
  double rest = 0;            ///< excess less all causes
  /// What the call itself was given or returned that is not usual. Values have no share of the excess.
  std::vector<ValueHint> values{};

  double excess() const { return static_cast<double>(duration) - static_cast<double>(usual); }
};

/// Compares one call with its siblings in two passes over all threads, in any order: learn(), then compare(). Memory: 8
/// bytes for each sibling, and the paths below them. Use from one thread; `trace` must outlive it.
class Explainer {
 public:
  /// `call` is a complete call of `function`, an id of its process; its row is of the columns that compare() gets.
  Explainer(const reader::Trace& trace, const CallRef& call, std::uint32_t function);

  void learn(const reader::Thread& thread, const columns::CallColumns& calls);
  /// `waits`: null where the trace has no thread states; `values`: which looks at these calls, outlives this and is the
  /// same each time; null where values are not looked at.
  void compare(const reader::Thread& thread, const columns::CallColumns& calls, const Waits* waits,
               PathValues* values = nullptr);
  /// Call once.
  Explanation take();
  const FunctionList& functions() const { return functions_; }

 private:
  struct Times {  // sums over calls, in ticks
    double own = 0, running = 0, runnable = 0, blocked = 0, total = 0;
    double own_faults = 0, faults = 0;
    double calls = 0;
  };
  struct Node {  // a path; the call itself is node 0
    std::uint32_t parent = 0;
    std::uint32_t function = 0;
    // Paths below it, in order of their first call: a list through the nodes, as most of them have few or none. 0:
    // none.
    std::uint32_t first_child = 0, last_child = 0, next = 0;
    Times call, typical;
  };
  using WaitOf = std::unordered_map<std::uint32_t, Wait>;
  static std::optional<Wait> wait_in(const WaitOf& waits, std::uint32_t node) {
    const auto at = waits.find(node);
    return at == waits.end() ? std::nullopt : std::optional(at->second);
  }

  template <typename Use>
  void each_outermost(const reader::Thread& thread, const columns::CallColumns& calls, Use&& use);
  void add(const reader::Thread& thread, const columns::CallColumns& calls, std::uint32_t root, Times Node::*side,
           const Waits* waits);
  std::uint32_t number_of(std::uint32_t process, std::uint32_t id);
  std::uint32_t child(std::uint32_t parent, std::uint32_t function);
  void find_causes(Explanation& of) const;
  void find_values(Explanation& of) const;
  void subtree_wait(std::uint32_t node, std::optional<Wait>& longest) const;
  void add_cause(Explanation& of, std::uint32_t node, CauseKind kind, double ticks) const;

  const reader::Trace& trace_;
  const CallRef call_;
  std::uint32_t function_ = 0;  // number
  FunctionList functions_;
  StateThreads states_;
  std::vector<std::uint64_t> durations_;  // of siblings
  bool settled_ = false, first_ = true, has_states_ = false;
  std::uint64_t usual_ = 0, least_ = 0, most_ = 0;  // of siblings; typical ones last from least_ to most_
  std::uint64_t left_until_ = 0;                    // of the call, if it was left by a tail call
  double spread_ = 0;
  std::uint64_t typical_ = 0;
  std::vector<Node> nodes_;
  PathValues* values_ = nullptr;  // by node
  WaitOf blocked_, runnable_;     // by node: the longest blocking that began in it, and the longest other wait

  void settle();
};

}  // namespace karst::analysis
