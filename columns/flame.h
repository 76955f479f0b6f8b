// SPDX-License-Identifier: MIT
// Calls merged by their path from the outermost call: what a flame graph shows. Exact: every call counts, with its time
// within the range. Iterative throughout: paths may be a million calls long.
#pragma once
#include <cstdint>
#include <vector>

#include "columns/scope.h"
#include "reader/column.h"

namespace karst::columns {

/// Times in ticks. Two sides, for comparing two sets of calls; without a comparison the second stays 0.
struct FlameNode {
  std::uint32_t parent = 0;
  std::uint32_t function = 0;
  std::uint32_t first_child = 0;   ///< the latest one; 0: none
  std::uint32_t next_sibling = 0;  ///< 0: none
  std::uint32_t children = 0;
  struct Side {
    std::uint64_t total = 0;
    std::uint64_t self = 0;
    std::uint64_t calls = 0;
  };
  Side side[2];
};

/// A tree of paths. Node 0 is the root and stands for everything; parents come before their children.
class FlameTree {
 public:
  static constexpr std::size_t kMaxNodes = std::size_t{4} << 20;
  static constexpr std::uint32_t kOther = 0xfffffffeU;  ///< function of what was beyond kMaxNodes
  static constexpr std::uint32_t kRoot = 0xffffffffU;

  FlameTree();

  /// Adds the calls of one thread. With `function` other than kNoFunction only the subtrees of its outermost calls.
  /// `what`: of their time only that; where a thread's states are not known it has none of it.
  void add(const Scope::Part& part, std::uint32_t function, TimeOf what = TimeOf::kAll);
  /// Weights of all nodes, first side: `self[node]` and `calls[node]` are its own; total is what is below it as well.
  /// The tree must have had none.
  void weigh(const std::vector<std::uint64_t>& self, const std::vector<std::uint64_t>& calls);
  /// Own times that are less than nothing, of the first side, go (columns/settle.h); totals are sums of own times then.
  void settle();
  /// Of `node`'s own weight so much is that of a node below it. Node 0 has more then, as nothing of it was its own.
  void give(std::uint32_t node, std::uint32_t below, std::uint64_t weight);
  /// Adds another tree. `number_of` maps its functions to those of this tree (null: they are the same). `as_second`:
  /// its first side becomes the second one here.
  void merge(const FlameTree& other, const std::vector<std::uint32_t>* number_of = nullptr, bool as_second = false);

  /// The node of `function` below `parent`, made where there is none. Its weights stay as they are.
  std::uint32_t child(std::uint32_t parent, std::uint32_t function);
  const reader::Column<FlameNode>& nodes() const { return nodes_; }
  /// Paths beyond kMaxNodes were summed.
  bool truncated() const { return truncated_; }
  /// The node of a path of functions from the root; nothing when there is none (then kRoot).
  std::uint32_t find(const std::vector<std::uint32_t>& path) const;
  /// From each function to its callers; a node's `total` is the self time that ran along its path, see the protocol.
  /// Callers are followed for some hundred calls upwards; what is above is summed.
  FlameTree inverted(const Work* work = nullptr) const;
  /// The paths that end in a function of `wanted` (by number; null: all), first side alone, of a tree that is settled.
  /// A node's `self` is its own weight, time or calls; its `total` is exactly the sum of `self` below it.
  FlameTree weighed(const std::vector<bool>* wanted, bool by_calls) const;

 private:
  std::vector<std::uint32_t> by_path() const;
  std::uint32_t find_or_make(std::uint32_t parent, std::uint32_t function);
  std::uint32_t lookup(std::uint32_t parent, std::uint32_t function) const;
  void insert(std::uint32_t node);

  // A node's few children are found by walking along them: they lie near it, in the order of their first calls. Those
  // of a node with many are in the table too.
  static constexpr std::uint32_t kFewChildren = 8;
  reader::Column<FlameNode> nodes_;
  std::vector<std::uint32_t> table_;  // open addressing: nodes by parent and function; 0 is free
  std::size_t in_table_ = 0;
  std::uint32_t latest_ = 0;  // that child() found
  bool truncated_ = false;
};

/// All of a scope, settled. With `function` and `what` as in FlameTree::add.
FlameTree flame(const Scope& scope, std::uint32_t function, TimeOf what = TimeOf::kAll);

inline constexpr std::int64_t kFlameRoot = -1;    ///< function of the root of everything
inline constexpr std::int64_t kFlameMerged = -2;  ///< function of a sum of small nodes

/// What is shown of a tree: small nodes summed, in the order of the protocol.
struct FlameView {
  struct Node {
    std::int64_t parent = -1;
    std::int64_t function = -1;  ///< kFlameRoot, kFlameMerged
    std::uint64_t merged = 0;
    FlameNode::Side side[2];
  };
  std::vector<Node> nodes;
};

/// The subtree of `root` with everything in it that takes at least `share` of it, on one side or the other.
FlameView prune(const FlameTree& tree, std::uint32_t root, double share);

}  // namespace karst::columns
