// What changed between two traces, or two parts of one: each function of both beside itself.
//
// Times of calls vary, so a difference alone says little. For each function the durations of its complete calls on both
// sides go through a rank test (Mann and Whitney): how probable are ranks so different if both sides are draws of one
// distribution? It asks for no normal distribution, and one slow outlier does not sway it. Many functions are tested at
// once, so the probabilities are adjusted (Benjamini and Hochberg): of the functions that are reported as changed, a
// share of `false_share` at most is expected to be chance. With very many calls differences of no use are certain too;
// so a change must also be of some size.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "reader/trace.h"

namespace karst::analysis {

struct DiffOptions {
  double false_share = 0.01;   ///< of those reported as changed: chance, at most so many are expected to be
  double least_change = 0.02;  ///< of the median; smaller changes are not reported
};

/// Complete calls that a side must have for a test.
inline constexpr std::uint64_t kLeastTested = 8;

struct DiffSide {
  std::uint64_t calls = 0, complete = 0, total_ns = 0, self_ns = 0;
  std::uint64_t p50_ns = 0;  ///< of the complete calls
};

struct FunctionDiff {
  std::string name, module;  ///< demangled name; path of the module in the first trace that has it
  DiffSide side[2];          ///< without calls: the function is not there
  bool tested = false;       ///< both sides have kLeastTested complete calls
  double chance = 1;         ///< adjusted probability that both sides are alike
  bool changed = false;      ///< by the options
  bool in_both() const { return side[0].calls != 0 && side[1].calls != 0; }
  /// Of the median: 0.05 is 5% longer; 0 where a side has none.
  double change() const {
    if (side[0].p50_ns == 0 || side[1].p50_ns == 0) return 0;
    return static_cast<double>(side[1].p50_ns) / static_cast<double>(side[0].p50_ns) - 1;
  }
};

/// One side: a report that is finished, with its builder.
struct Measured {
  const Report& report;
  const ReportBuilder& builder;
  const reader::Trace& trace;
};

/// The changed functions come first, those with the greatest difference of self time before others; then those that are
/// on one side alone; then the rest. A function is the same if its name and its module's file name are: paths and lines
/// differ between builds. One without a name is the same only at the same address of the same build of its module.
std::vector<FunctionDiff> compare(const Measured& first, const Measured& second, const DiffOptions& options);

/// Probability that samples which differ by so much or more in rank are of one distribution: two-sided, by the normal
/// approximation with ties accounted for. Neither may be empty; sorts both.
double rank_test(std::vector<std::uint64_t>& first, std::vector<std::uint64_t>& second);

/// Makes the probabilities of many tests such that those below a limit have at most that share of chance (Benjamini and
/// Hochberg), in place.
void adjust_for_many(std::vector<double>& chances);

}  // namespace karst::analysis
