// SPDX-License-Identifier: MIT
// What changed between two sides, each of one trace, a part of one, or several: each function of both beside itself.
//
// Times of calls vary, so a difference alone says little. What is compared is the mean of the middle half of a run's
// durations (the midmean): slow outliers do not sway it, and it is finer than the clock.
//
// Runs of one program differ, by where its memory lies and by what the machine does. What is usual is kRunsDiffer,
// kRunsDifferNs, and what parts of a run differ by among themselves. Two parts of one trace are one run.
//
// Where times are without the tracer's cost (tracing_cost.h), that is an estimate. What was taken out is the same on
// both sides if their calls make as many calls; by as much as it differs the sides may differ without that being told.
//
// several runs  They say themselves how much they differ; as they are few, together with what is usual: a moderated
//               t-test of the logarithms of their midmeans (Smyth, 2004), where that is worth kUsualFreedom runs more.
//               All runs of one side must also be above all of the other.
// one a side    Two tests, both of which must say so. The midmeans must differ by more than is usual (kOneRunDiffers,
//               as machines change their speed from run to run). And the durations of all calls go through a rank test
//               (Mann and Whitney): how probable are ranks so different if both sides are draws of one distribution?
//
// Many functions are tested at once, so the probabilities are adjusted (Benjamini and Hochberg): of the functions that
// are reported as changed, a share of `false_share` at most is expected to be chance. With very many calls differences
// of no use are certain too; so a change must also be of some size.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/diff_counts.h"
#include "analysis/report.h"
#include "columns/edges.h"
#include "reader/trace.h"

namespace karst::analysis {

struct DiffOptions {
  double false_share = 0.01;   ///< of those reported as changed: chance, at most so many are expected to be
  double least_change = 0.02;  ///< of the midmean; smaller changes are not reported
};

/// Complete calls that a run must have for a test.
inline constexpr std::uint64_t kLeastTested = 8;
/// Standard deviation of a function's midmean, as it was recorded, from run to run, where one run cannot tell: this
/// part of it, and so many ns. Sixteen runs of programs with allocations and random memory had 0.4 to 1.6%, and 2 ns.
inline constexpr double kRunsDiffer = 0.01, kRunsDifferNs = 2;
/// Degrees of freedom.
inline constexpr double kUsualFreedom = 10;
/// The same of the self time of a run's calls, a sum, which has the machine's interruptions in it.
inline constexpr double kSelfDiffers = 0.05;
/// The same as kRunsDiffer of one run a side. Clock rates and neighbours change from run to run, which one run cannot
/// tell: two runs of one binary were seen to differ by 29%.
inline constexpr double kOneRunDiffers = 0.12;
/// Of one run a side, the self time of a function with few calls is judged only if it is so long.
inline constexpr std::uint64_t kLeastOneRunNs = 20'000'000;

/// A function's self time changed only if that is so much of all functions'.
inline constexpr double kLeastShare = 0.01;
/// The duration of a function's calls changed only if all its calls together are so much of that, on one side.
inline constexpr double kLeastShareOfCalls = 0.002;

/// Sums of all its runs.
struct DiffSide {
  std::uint64_t calls = 0, complete = 0, total_ns = 0, self_ns = 0;
  std::uint64_t total_cost_ns = 0;  ///< the tracer's, which was taken out of total_ns
  std::uint64_t p50_ns = 0;         ///< of the complete calls
  double middle_ns = 0;             ///< their midmean, the geometric mean of its runs'; 0: no run has kLeastTested
  /// What was taken out of a call.
  double call_cost_ns() const {
    return calls == 0 ? 0 : static_cast<double>(total_cost_ns) / static_cast<double>(calls);
  }
};

struct FunctionDiff {
  std::string name, module;  ///< demangled name; path of the module in the first trace that has it
  DiffSide side[2];          ///< without calls: the function is not there
  bool tested = false;       ///< both sides have runs with kLeastTested complete calls
  double chance = 1;         ///< adjusted probability that both sides are alike
  bool changed = false;      ///< its calls' durations, by the options
  double self_chance = 1;    ///< the same of the self time of a call: its sum in a run
  bool self_changed = false;
  Counts counts = Counts::kSame;  ///< of its calls
  std::size_t runs[2] = {1, 1};
  bool in_time() const { return changed || self_changed; }
  /// Its count, its time, or that there is one.
  bool differs() const { return in_time() || counts != Counts::kSame; }
  double self_ns(int at) const;  ///< of a run, as a mean; as calls() is
  double calls(int at) const;
  double self_more_ns() const { return self_ns(1) - self_ns(0); }
  double self_change() const;  ///< of the self time of a call: 0.05 is 5% longer
  double slower_ns() const;    ///< what B's calls take more than as many of A would, by themselves
  bool in_both() const { return side[0].calls != 0 && side[1].calls != 0; }
  /// Of the midmean: 0.05 is 5% longer; 0 where a side has none.
  double change() const {
    return side[0].middle_ns > 0 && side[1].middle_ns > 0 ? side[1].middle_ns / side[0].middle_ns - 1 : 0;
  }
};

/// A run: a report that is finished, with its builder.
struct Measured {
  const Report& report;
  const ReportBuilder& builder;
  const reader::Trace& trace;
  const std::vector<columns::Edge>* edges = nullptr;  ///< of the builder's functions; null: not known
};

/// Self time of all functions of a run, in ns.
double all_self_ns(std::span<const FunctionDiff> functions, int at);
bool is_one_trace(std::span<const Measured> first, std::span<const Measured> second);  ///< two parts of it
CountTrust trust_of(std::span<const Measured> first, std::span<const Measured> second);

/// Those that differ come first, with the greatest difference of self time before others; then the rest. A function is
/// the same if its name and its module's file name are: paths and lines differ between builds. So are those of the
/// traced program, whatever that is called. One without a name is the same only at the same address of the same build
/// of its module. Each side has a run at least.
std::vector<FunctionDiff> compare(std::span<const Measured> first, std::span<const Measured> second,
                                  const DiffOptions& options);

/// Probability that samples which differ by so much or more in rank are of one distribution: two-sided, by the normal
/// approximation with ties accounted for. Neither may be empty; sorts both.
double rank_test(std::vector<std::uint64_t>& first, std::vector<std::uint64_t>& second);

/// Probability that samples whose means differ by so much or more are of one normal distribution: two-sided, by
/// Student's t. `usual` is a variance that is known beforehand, as well as by `freedom` degrees of freedom. There are
/// three values at least, or `freedom` is not 0. By `unknown` the means may be off; less than that is no difference.
double mean_test(std::span<const double> first, std::span<const double> second, double usual, double freedom,
                 double unknown = 0);

/// Makes the probabilities of many tests such that those below a limit have at most that share of chance (Benjamini and
/// Hochberg), in place.
void adjust_for_many(std::vector<double>& chances);

}  // namespace karst::analysis
