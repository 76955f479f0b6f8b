// SPDX-License-Identifier: MIT
// From a call to its path's node in a tree of paths, which is made as it is asked for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "columns/flame.h"
#include "columns/scope.h"
#include "reader/model.h"

namespace karst::analysis {

/// What it is made with must outlive it.
class PathNodes {
 public:
  PathNodes(columns::FlameTree& tree, const columns::Scope::Part& part, const reader::Calls& calls)
      : tree_(tree), part_(part), calls_(calls), nodes_(calls.size(), kUnknown) {}

  std::uint32_t of(std::uint32_t row) {
    if (row == reader::kNoParent) return 0;
    path_.clear();
    for (; row != reader::kNoParent && nodes_[row] == kUnknown; row = calls_.parent[row]) path_.push_back(row);
    std::uint32_t node = row == reader::kNoParent ? 0 : nodes_[row];
    for (std::size_t i = path_.size(); i != 0; --i)
      node = nodes_[path_[i - 1]] = tree_.child(node, part_.function(path_[i - 1]));
    return node;
  }

 private:
  static constexpr std::uint32_t kUnknown = 0xffffffffU;
  columns::FlameTree& tree_;
  const columns::Scope::Part& part_;
  const reader::Calls& calls_;
  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> path_;  // rows whose nodes are to be made, the innermost first
};

}  // namespace karst::analysis
