// SPDX-License-Identifier: MIT
// What a comparison found, in an order to read it in: what is certain first, and of that what explains the most time.
//
//   count  a caller calls a callee more or less often. Exact, so it is certain with one run a side
//   time   a function's own code takes longer or shorter a call. Certain when it is beyond chance
#pragma once
#include <span>
#include <string>
#include <vector>

#include "analysis/diff.h"
#include "analysis/diff_calls.h"

namespace karst::analysis {

struct Finding {
  enum class Kind { kCount, kTime } kind = Kind::kCount;
  std::string caller;  ///< of a count; empty: nothing traced called it
  std::string function;
  double calls[2] = {0, 0};         ///< of a run: of the function by the caller; of a time, all
  double call_self_ns[2] = {0, 0};  ///< of a time: self time of a call
  double more_ns = 0;               ///< of a run, from A to B
  double weight_ns = 0;             ///< what it is ranked by: `more_ns` without what looks like the machine's doing
  bool certain = false;
  double chance = 0;              ///< of a time: probability that the sides are alike
  Counts counts = Counts::kSame;  ///< of a count
};

std::vector<Finding> findings(std::span<const FunctionDiff> functions, std::span<const CallDiff> calls);

/// Certain, and more than `limit` (0.05 is 5%): its calls take longer, its own code does, or it is called more often
/// and takes longer in all. `all_ns`: all_self_ns() of both sides, which a new function's time is measured by.
bool is_over(const FunctionDiff& function, double limit, const double (&all_ns)[2]);

}  // namespace karst::analysis
