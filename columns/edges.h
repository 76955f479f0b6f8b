// SPDX-License-Identifier: MIT
// Who called whom: one edge for each pair of caller and callee, however deep the calls lie. A recursion becomes an edge
// from a function to itself, or a ring of edges.
#pragma once
#include <cstdint>
#include <vector>

#include "columns/scope.h"

namespace karst::columns {

/// Times in ticks.
struct Edge {
  std::uint32_t caller = kNoFunction;  ///< kNoFunction: called by nothing that is looked at
  std::uint32_t callee = kNoFunction;
  std::uint64_t calls = 0;
  std::uint64_t total = 0;  ///< time within the callee; such a call within another one of the same edge adds nothing
  std::uint64_t self = 0;   ///< its own; until settle() it wraps if callees outlast it, as FunctionSums::self
};

/// Adds up parts. Use from one thread at a time.
class EdgeSums {
 public:
  EdgeSums() : table_(64) {}
  void add(const Scope::Part& part);
  /// Behind all parts: own times that are less than nothing go (columns/settle.h).
  void settle();
  /// In order of their first call.
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t number(std::uint32_t caller, std::uint32_t callee);

  std::vector<Edge> edges_;
  std::vector<std::uint32_t> active_;  // by edge: its calls on the stack
  std::vector<std::uint32_t> latest_;  // by callee: its latest edge, or kNone
  std::vector<std::uint32_t> table_;   // open addressing: number of the edge plus one; 0 is free
};

}  // namespace karst::columns
