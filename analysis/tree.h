// SPDX-License-Identifier: MIT
// Calls as a tree: which rows of a thread's columns to show, in order, with their level; and the slowest of them.
//
// A *level* is the distance from the outermost shown call, not Calls::depth: depth saturates,
// and a subtree that is shown alone starts at level 0. Nothing here recurses: a million nested calls are as
// good as two.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "analysis/selection.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

/// What a walk leaves out.
struct TreeOptions {
  /// Show only the subtrees rooted at outermost calls of these functions; null: everything.
  const FunctionSet* roots = nullptr;
  /// Levels to show; the calls below are left out.
  std::uint32_t max_levels = std::numeric_limits<std::uint32_t>::max();
};

/// Walks the rows of one thread in order. `enter(row, level)` is called for each shown call, and `leave(row, level)`
/// when everything inside it is done, so that the two nest properly. When `enter` returns false the walk ends
/// at once, without the calls of `leave` that are due. With `only_root` other than kNoParent, walks the subtree of
/// that row alone (`roots` is not looked at).
template <typename Enter, typename Leave>
void walk(const reader::Calls& calls, std::uint32_t process, const TreeOptions& options, Enter&& enter, Leave&& leave,
          std::uint32_t only_root = reader::kNoParent) {
  enum class State : std::uint8_t { kOutside, kShown, kHidden };
  struct Frame {
    std::uint32_t row;
    std::uint32_t level;
    State state;
  };
  std::vector<Frame> stack;
  auto pop = [&] {
    const Frame top = stack.back();
    stack.pop_back();
    if (top.state == State::kShown) leave(top.row, top.level);
  };
  const auto count = static_cast<std::uint32_t>(calls.size());
  for (std::uint32_t row = only_root == reader::kNoParent ? 0 : only_root; row < count; ++row) {
    const std::uint32_t parent = calls.parent[row];
    while (!stack.empty() && stack.back().row != parent) pop();
    if (only_root != reader::kNoParent && row != only_root && stack.empty()) break;

    Frame frame{row, 0, State::kOutside};
    const bool inside = !stack.empty() && stack.back().state != State::kOutside;
    if (inside) {
      frame.level = stack.back().level + 1;
      frame.state = stack.back().state;
    } else if (only_root != reader::kNoParent || options.roots == nullptr ||
               options.roots->contains(process, calls.function[row])) {
      frame.state = State::kShown;
    }
    if (frame.state == State::kShown && frame.level >= options.max_levels) frame.state = State::kHidden;
    stack.push_back(frame);
    if (frame.state == State::kShown && !enter(row, frame.level)) return;
  }
  while (!stack.empty()) pop();
}

/// One call of a trace.
struct CallRef {
  const reader::Thread* thread = nullptr;
  std::uint32_t row = 0;
  std::uint64_t duration = 0;  ///< ticks, without the tracer's cost if that is taken out
  std::uint64_t begin = 0;     ///< ticks
  std::uint64_t end = 0;       ///< ticks, as recorded
};

/// Collects the N slowest outermost calls of some functions, thread by thread. Memory: N calls.
class SlowestCalls {
 public:
  explicit SlowestCalls(std::size_t most) : most_(most) {}
  void add(const reader::Thread& thread, const reader::Calls& calls, const TreeOptions& options);
  /// The slowest first; of equals the earlier.
  std::vector<CallRef> take();

 private:
  std::size_t most_;
  std::vector<CallRef> heap_;  // its top is the least slow
};

/// The callers of `row`, outermost first, without `row` itself.
std::vector<std::uint32_t> path_to(const reader::Calls& calls, std::uint32_t row);

}  // namespace karst::analysis
