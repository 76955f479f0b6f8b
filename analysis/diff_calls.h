// SPDX-License-Identifier: MIT
// Who calls whom how often, on both sides of a comparison: one row for each caller and callee whose count changed.
//
// A count that changed somewhere changes all counts below it in proportion. A row is a cause if its caller calls the
// callee more or less often per own call; the rest follows from what the caller's callers do, and is left out.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/diff.h"
#include "analysis/diff_counts.h"

namespace karst::analysis {

struct CallDiff {
  std::string caller, callee;  ///< demangled names; no caller: nothing traced called it
  struct Side {
    std::uint64_t calls = 0;     ///< of all runs
    std::uint64_t total_ns = 0;  ///< within the callee; a call within another one of the same pair adds nothing
  } side[2];
  std::size_t runs[2] = {1, 1};
  Counts counts = Counts::kSame;
  double calls(int at) const;  ///< of a run, as a mean
  double gained_ns() const;    ///< what the calls that a run of B has more take, less than 0 if it has fewer
};

/// The causes, of runs that have edges; others count as without calls.
std::vector<CallDiff> compare_calls(std::span<const Measured> first, std::span<const Measured> second);

}  // namespace karst::analysis
