// SPDX-License-Identifier: MIT
// Begins and ends of a thread's calls, told apart from each other, as calls.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "import/foreign_trace.h"

namespace karst::importing {

/// A begin or an end.
struct Edge {
  Moment at;
  bool begins = false;
  std::optional<std::uint32_t> function;  ///< of a begin always; of an end where the format says it
  std::uint32_t text = 0;                 ///< of a begin
  bool tail = false;                      ///< of an end: Call::tail
};

/// Sorts edges by time, and adds the calls that they are to `calls`. An end belongs to the innermost begin that has
/// none, of its function if it says one. Returns how many ends have no begin.
std::uint64_t match_edges(std::vector<Edge>& edges, std::vector<Call>& calls);

}  // namespace karst::importing
