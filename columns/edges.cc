// SPDX-License-Identifier: MIT
// One walk, parents first, with the stack of calls beside it; a hash table finds an edge by its two functions.
#include "columns/edges.h"

#include <algorithm>
#include <cstddef>

#include "columns/pair_hash.h"
#include "columns/settle.h"

namespace karst::columns {
std::uint32_t EdgeSums::number(std::uint32_t caller, std::uint32_t callee) {
  if (edges_.size() * 2 >= table_.size()) {
    std::vector<std::uint32_t>(table_.size() * 2).swap(table_);
    const std::size_t mask = table_.size() - 1;
    for (std::uint32_t i = 0; i < edges_.size(); ++i) {
      std::size_t at = pair_hash(edges_[i].caller, edges_[i].callee) & mask;
      while (table_[at] != 0) at = (at + 1) & mask;
      table_[at] = i + 1;
    }
  }
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = pair_hash(caller, callee) & mask;; at = (at + 1) & mask) {
    if (table_[at] == 0) {
      edges_.push_back({caller, callee});
      active_.push_back(0);
      return (table_[at] = static_cast<std::uint32_t>(edges_.size())) - 1;
    }
    const Edge& edge = edges_[table_[at] - 1];
    if (edge.caller == caller && edge.callee == callee) return table_[at] - 1;
  }
}

void EdgeSums::add(const Scope::Part& part) {
  struct Frame {
    std::uint32_t row;
    std::uint32_t function;
    std::uint32_t edge;
  };
  const CallColumns& calls = part.thread->calls;
  std::vector<Frame> stack;
  auto open = part.open.begin();
  each_row(part.rows, [&](std::uint32_t row) {
    const std::uint32_t parent = calls.parent[row];
    while (!stack.empty() && stack.back().row != parent) {
      --active_[stack.back().edge];
      stack.pop_back();
    }
    const std::uint32_t callee = part.function(row);
    const std::uint32_t caller = stack.empty() ? kNoFunction : stack.back().function;
    if (callee >= latest_.size()) latest_.resize(callee + std::size_t{1}, kNone);
    std::uint32_t& at = latest_[callee];  // most functions are called by the same one again
    if (at == kNone || edges_[at].caller != caller) at = number(caller, callee);
    if (open != part.open.end() && *open == row) {
      ++open;
      ++active_[at];
      stack.push_back({row, callee, at});
      return;
    }
    const std::uint64_t inside = part.time_of(row);
    if (!stack.empty()) edges_[stack.back().edge].self -= inside;
    Edge& edge = edges_[at];
    edge.calls += part.counts(row) ? 1 : 0;
    edge.self += inside;
    if (active_[at]++ == 0) edge.total += inside;
    stack.push_back({row, callee, at});
  });
  for (const Frame& frame : stack) --active_[frame.edge];
}

void EdgeSums::settle() {
  columns::settle(
      edges_.size(), [&](std::size_t i) -> std::uint64_t& { return edges_[i].self; },
      [&](std::size_t i) { return edges_[i].callee; });
}

}  // namespace karst::columns
