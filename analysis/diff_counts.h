// SPDX-License-Identifier: MIT
// Whether a count differs between two sides of one or several runs each, and how sure that is.
#pragma once
#include <cstdint>
#include <span>

namespace karst::analysis {

enum class Counts {
  kSame,
  kExact,       ///< each side's runs agree among themselves, the sides do not
  kBeyondRuns,  ///< runs of a side differ, but the sides are farther apart than that
  kWithinRuns,  ///< the sides are no farther apart than runs of one side are
  kMayVary,     ///< one run a side of several threads, whose counts may vary, and less than kThreadsVary
  kIncomplete,  ///< a run has not all its calls: events were overwritten or lost, or the budget left functions out
};

/// One run a side of a program with threads: a count that grows by less may be chance.
inline constexpr double kThreadsVary = 1.5;

/// What the runs are worth.
struct CountTrust {
  bool complete = true;
  bool threads = false;  ///< several threads made calls
};

inline bool is_certain(Counts counts) { return counts == Counts::kExact || counts == Counts::kBeyondRuns; }

/// `first`, `second`: the count in each run; neither is empty.
Counts compare_counts(std::span<const std::uint64_t> first, std::span<const std::uint64_t> second, CountTrust trust);

/// "exact", "beyond runs", ...: for people and programs.
const char* word_of(Counts counts);

}  // namespace karst::analysis
