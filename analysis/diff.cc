// SPDX-License-Identifier: MIT
#include "analysis/diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/diff_names.h"

namespace karst::analysis {
namespace {

struct Run {
  std::uint64_t calls = 0, self_ns = 0, self_cost_ns = 0;
  std::vector<std::uint64_t> durations;  // ns, thread by thread in order of time; then sorted
  double middle = 0;                     // 0: they are too few
  double within = 0;                     // variance of its logarithm
};

struct Both {
  FunctionDiff diff;
  std::vector<Run> runs[2];
};

std::uint64_t median(const std::vector<std::uint64_t>& sorted) {
  return sorted.empty() ? 0 : sorted[(sorted.size() + 1) / 2 - 1];  // as columns::percentiles
}

/// Of the middle half, where those at its edges count by the part of them that lies in it.
double midmean(const std::vector<std::uint64_t>& sorted) {
  const double edge = static_cast<double>(sorted.size()) / 4;
  const auto from = static_cast<std::size_t>(edge);
  const std::size_t end = sorted.size() - from;
  double sum = 0;
  for (std::size_t i = from; i < end; ++i) sum += static_cast<double>(sorted[i]);
  const double part = edge - static_cast<double>(from);  // of the first and the last one outside
  sum -= part * static_cast<double>(sorted[from] + sorted[end - 1]);
  return sum / (2 * edge);
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The sum of their distances from their mean, squared.
double squares_of(std::span<const double> values) {
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return squares;
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22, by Lentz's method).
double beta_share(double a, double b, double x) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - beta_share(b, a, 1 - x);  // where it converges fast
  constexpr double kTiny = 1e-300, kClose = 1e-14;
  constexpr int kMost = 1000;
  const auto not_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m < kMost; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    for (const double term : {even, odd}) {
      d = 1 / not_zero(1 + term * d);
      c = not_zero(1 + term / c);
      fraction *= c * d;
    }
    if (std::abs(c * d - 1) < kClose) break;
  }
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return front * fraction / a;
}

// Most durations of many are short, so those are counted, and only the rest is compared.
void sort_durations(std::vector<std::uint64_t>& values) {
  constexpr std::size_t kShort = std::size_t{1} << 16;
  if (std::is_sorted(values.begin(), values.end())) return;
  if (values.size() < kShort) {
    std::sort(values.begin(), values.end());
    return;
  }
  std::vector<std::size_t> count(kShort);
  std::vector<std::uint64_t> rest;
  for (const std::uint64_t value : values) {
    if (value < kShort)
      ++count[value];
    else
      rest.push_back(value);
  }
  std::sort(rest.begin(), rest.end());
  auto to = values.begin();
  for (std::size_t value = 0; value < kShort; ++value) to = std::fill_n(to, count[value], value);
  std::copy(rest.begin(), rest.end(), to);
}

}  // namespace

double rank_test(std::vector<std::uint64_t>& first, std::vector<std::uint64_t>& second) {
  sort_durations(first);
  sort_durations(second);
  const auto n1 = static_cast<double>(first.size()), n2 = static_cast<double>(second.size()), n = n1 + n2;
  double ranks = 0;  // of the first side's; equals share the mean of their ranks
  double ties = 0;
  std::size_t i = 0, j = 0;
  while (i < first.size() || j < second.size()) {
    const bool take_first = j == second.size() || (i < first.size() && first[i] <= second[j]);
    const std::uint64_t value = take_first ? first[i] : second[j];
    const std::size_t before = i + j, i_before = i;
    while (i < first.size() && first[i] == value) ++i;
    while (j < second.size() && second[j] == value) ++j;
    const auto equal = static_cast<double>(i + j - before);
    ranks += static_cast<double>(i - i_before) * (static_cast<double>(before) + (equal + 1) / 2);
    ties += equal * equal * equal - equal;
  }
  const double u = ranks - n1 * (n1 + 1) / 2;
  const double variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)));
  if (!(variance > 0)) return 1;  // all are equal
  const double away = std::max(0.0, std::abs(u - n1 * n2 / 2) - 0.5);
  return std::erfc(away / std::sqrt(variance) / std::sqrt(2.0));
}

void adjust_for_many(std::vector<double>& chances) {
  std::vector<std::size_t> order(chances.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return chances[a] > chances[b]; });
  double least = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double rank = static_cast<double>(order.size() - i);
    least = std::min(least, chances[order[i]] * static_cast<double>(order.size()) / rank);
    chances[order[i]] = least;
  }
}

double mean_test(std::span<const double> first, std::span<const double> second, double usual, double freedom,
                 double unknown) {
  double squares = usual * freedom;
  const double difference = std::max(std::abs(mean(first) - mean(second)) - unknown, 0.0);
  for (const std::span<const double> values : {first, second}) squares += squares_of(values);
  freedom += static_cast<double>(first.size() + second.size()) - 2;
  const double variance =
      squares / freedom * (1 / static_cast<double>(first.size()) + 1 / static_cast<double>(second.size()));
  if (!(variance > 0)) return difference == 0 ? 1 : 0;
  return beta_share(freedom / 2, 0.5, freedom / (freedom + difference * difference / variance));
}

namespace {

using Runs = std::span<const Measured>;

/// The calls of the function in one run; several of its functions may be this one.
void add_calls(const Measured& from, const FunctionReport& f, FunctionDiff& diff, int at, Run& run) {
  if (diff.name.empty()) diff.name = f.name;
  if (diff.module.empty()) diff.module = f.module;
  DiffSide& side = diff.side[at];
  side.calls += f.calls;
  side.complete += f.calls - f.open_calls;
  side.total_ns += f.total_ns;
  side.self_ns += f.self_ns;
  side.total_cost_ns += f.total_cost_ns;
  run.calls += f.calls;
  run.self_ns += f.self_ns;
  run.self_cost_ns += f.self_cost_ns;
  std::vector<std::uint64_t> durations = from.builder.durations_of(f.number);
  for (std::uint64_t& duration : durations) duration = from.trace.clock().to_ns(duration);
  if (run.durations.empty())
    run.durations = std::move(durations);
  else
    run.durations.insert(run.durations.end(), durations.begin(), durations.end());
}

std::vector<double> middles_of(const std::vector<Run>& runs) {
  std::vector<double> logarithms;
  for (const Run& run : runs)
    if (run.middle > 0) logarithms.push_back(std::log(run.middle));
  return logarithms;
}

/// Variance of the logarithm of a run's midmean by how its parts differ; 0: it has too few calls.
double variance_within(const std::vector<std::uint64_t>& durations) {
  constexpr std::size_t kParts = 16, kLeastInPart = 16, kMostInPart = 4096;  // of those evenly spread
  const std::size_t part = durations.size() / kParts;
  if (part < kLeastInPart) return 0;
  const std::size_t step = (part + kMostInPart - 1) / kMostInPart;
  std::vector<double> logarithms;
  std::vector<std::uint64_t> of;
  for (std::size_t i = 0; i < kParts; ++i) {
    of.clear();
    for (std::size_t n = i * part; n < (i + 1) * part; n += step) of.push_back(durations[n]);
    std::sort(of.begin(), of.end());
    logarithms.push_back(std::log(std::max(midmean(of), 1.0)));
  }
  return squares_of(logarithms) / (kParts - 1) / kParts;
}

/// All values of one side are above all of the other.
bool are_apart(const std::vector<double>& a, const std::vector<double>& b) {
  const auto [least_a, most_a] = std::minmax_element(a.begin(), a.end());
  const auto [least_b, most_b] = std::minmax_element(b.begin(), b.end());
  return *most_a < *least_b || *most_b < *least_a;
}

/// Probability that sides differ by so much, by what runs of one program differ by.
double runs_test(const Both& both, const std::vector<double> (&middles)[2], bool one_run) {
  const bool several = middles[0].size() + middles[1].size() > 2;
  const double differ = several ? kRunsDiffer : kOneRunDiffers;
  double usual = 0;
  const double a = mean(middles[0]), b = mean(middles[1]);
  const DiffSide(&sides)[2] = both.diff.side;
  for (int at = 0; at < 2; ++at) {
    double within = 0;
    for (const Run& run : both.runs[at]) within += run.within;
    usual += within / static_cast<double>(middles[at].size()) / 2;
    const double ns = std::exp(at == 0 ? a : b);
    const double recorded = (ns + sides[at].call_cost_ns()) / ns;
    if (!one_run) usual += (std::pow(differ * recorded, 2) + std::pow(kRunsDifferNs / ns, 2)) / 2;
  }
  const double unknown =
      std::log1p(std::abs(sides[0].call_cost_ns() - sides[1].call_cost_ns()) / std::exp(std::min(a, b)));
  if (several && !are_apart(middles[0], middles[1])) return 1;
  if (several) return mean_test(middles[0], middles[1], usual, kUsualFreedom, unknown);
  const double difference = std::max(std::abs(a - b) - unknown, 0.0);
  if (!(usual > 0)) return difference == 0 ? 1 : 0;
  return std::erfc(difference / std::sqrt(2 * 2 * usual));
}

/// By run: the logarithm of the self time of a call; those of runs without any are left out.
std::vector<double> self_times_of(const std::vector<Run>& runs) {
  std::vector<double> logarithms;
  for (const Run& run : runs)
    if (run.calls != 0 && run.self_ns != 0)
      logarithms.push_back(std::log(static_cast<double>(run.self_ns) / static_cast<double>(run.calls)));
  return logarithms;
}

/// What was taken out of the self time of a call, in ns.
double self_cost_of(const std::vector<Run>& runs) {
  std::uint64_t calls = 0, cost = 0;
  for (const Run& run : runs) {
    calls += run.calls;
    cost += run.self_cost_ns;
  }
  return calls == 0 ? 0 : static_cast<double>(cost) / static_cast<double>(calls);
}

/// Probability that self times differ so by chance: 1 where that is not known.
double self_test(const Both& both, bool one_trace) {
  const std::vector<double> a = self_times_of(both.runs[0]), b = self_times_of(both.runs[1]);
  if (one_trace || a.empty() || b.empty() || !are_apart(a, b)) return 1;
  const double cost = std::abs(self_cost_of(both.runs[0]) - self_cost_of(both.runs[1]));
  const double unknown = std::log1p(cost / std::exp(std::min(mean(a), mean(b))));
  if (a.size() + b.size() > 2) return mean_test(a, b, kSelfDiffers * kSelfDiffers, kUsualFreedom, unknown);
  const bool long_enough = std::max(both.diff.side[0].self_ns, both.diff.side[1].self_ns) >= kLeastOneRunNs;
  if (both.diff.tested || !long_enough) return 1;
  return std::erfc(std::max(std::abs(a[0] - b[0]) - unknown, 0.0) / (2 * kOneRunDiffers));
}

std::vector<std::uint64_t> calls_of(const std::vector<Run>& runs) {
  std::vector<std::uint64_t> calls;
  calls.reserve(runs.size());
  for (const Run& run : runs) calls.push_back(run.calls);
  return calls;
}

std::vector<std::uint64_t> all_of(std::vector<Run>& runs) {
  std::vector<std::uint64_t> all = std::move(runs[0].durations);
  for (std::size_t i = 1; i < runs.size(); ++i)
    all.insert(all.end(), runs[i].durations.begin(), runs[i].durations.end());
  return all;
}

/// Finishes the sides. The probability that they are alike; none: they have too few calls.
std::optional<double> test(Both& both, bool one_run) {
  FunctionDiff& diff = both.diff;
  std::vector<double> middles[2];
  for (int at = 0; at < 2; ++at) {
    for (Run& run : both.runs[at]) {
      if (run.durations.size() < kLeastTested) continue;
      run.within = variance_within(run.durations);
      sort_durations(run.durations);
      run.middle = midmean(run.durations);
    }
    middles[at] = middles_of(both.runs[at]);
    if (!middles[at].empty()) diff.side[at].middle_ns = std::exp(mean(middles[at]));
  }
  diff.tested = !middles[0].empty() && !middles[1].empty();
  const bool several = middles[0].size() + middles[1].size() > 2;
  std::optional<double> chance;
  if (diff.tested) chance = runs_test(both, middles, one_run);
  std::vector<std::uint64_t> all[2] = {all_of(both.runs[0]), all_of(both.runs[1])};
  if (diff.tested && !several)
    chance = std::max(*chance, rank_test(all[0], all[1]));
  else
    for (auto& durations : all) sort_durations(durations);
  for (int at = 0; at < 2; ++at) diff.side[at].p50_ns = median(all[at]);
  return chance;
}

/// `chances`: of those that were tested; `self_chances`: of all.
void judge(std::vector<FunctionDiff>& result, std::vector<double>& chances, std::vector<double>& self_chances,
           const DiffOptions& options) {
  adjust_for_many(chances);
  adjust_for_many(self_chances);
  const double all_ns = std::max(all_self_ns(result, 0), all_self_ns(result, 1));
  auto chance = chances.begin(), self_chance = self_chances.begin();
  for (FunctionDiff& diff : result) {
    diff.self_chance = *self_chance++;
    diff.self_changed = diff.self_chance < options.false_share && std::abs(diff.slower_ns()) >= kLeastShare * all_ns;
    if (!diff.tested) continue;
    diff.chance = *chance++;
    const auto total_ns = static_cast<double>(std::max(diff.side[0].total_ns, diff.side[1].total_ns));
    diff.changed = diff.chance < options.false_share && std::abs(diff.change()) >= options.least_change &&
                   total_ns >= kLeastShareOfCalls * all_ns;
  }
}

/// Events were overwritten or lost, or the budget left functions out.
bool has_all_calls(const Measured& run) {
  if (run.report.missing_blocks != 0) return false;
  for (const reader::Process& process : run.trace.processes()) {
    if (process.overwritten_events != 0 || process.lost_events != 0) return false;
    for (const reader::Function& f : process.functions)
      if (f.culled) return false;
  }
  return true;
}

}  // namespace

bool is_one_trace(Runs first, Runs second) {
  if (first.size() != 1 || second.size() != 1) return false;
  const reader::Trace &a = first[0].trace, &b = second[0].trace;
  return a.name() == b.name() && first_ticks(a) == first_ticks(b);  // a page knows no paths
}

CountTrust trust_of(Runs first, Runs second) {
  CountTrust trust;
  for (const Runs side : {first, second})
    for (const Measured& run : side) {
      trust.complete = trust.complete && has_all_calls(run);
      trust.threads = trust.threads || run.report.threads > 1;
    }
  return trust;
}

double all_self_ns(std::span<const FunctionDiff> functions, int at) {
  double sum = 0;
  for (const FunctionDiff& f : functions) sum += f.self_ns(at);
  return sum;
}

double FunctionDiff::self_ns(int at) const {
  return static_cast<double>(side[at].self_ns) / static_cast<double>(runs[at]);
}
double FunctionDiff::calls(int at) const { return static_cast<double>(side[at].calls) / static_cast<double>(runs[at]); }
double FunctionDiff::self_change() const {
  return in_both() && side[0].self_ns != 0 ? self_ns(1) / calls(1) / (self_ns(0) / calls(0)) - 1 : 0;
}
double FunctionDiff::slower_ns() const { return in_both() ? self_ns(1) - self_ns(0) / calls(0) * calls(1) : 0; }

std::vector<FunctionDiff> compare(Runs first, Runs second, const DiffOptions& options) {
  std::map<DiffNames::Key, Both> functions;
  const bool one_trace = is_one_trace(first, second);
  const Runs sides[] = {first, second};
  for (int at = 0; at < 2; ++at) {
    for (std::size_t n = 0; n < sides[at].size(); ++n) {
      const Measured& from = sides[at][n];
      const DiffNames names(from.trace, one_trace);
      for (const FunctionReport& f : from.report.functions) {
        Both& both = functions[names.of(f.name, f.module)];
        for (int side = 0; side < 2; ++side) both.runs[side].resize(sides[side].size());
        add_calls(from, f, both.diff, at, both.runs[at][n]);
      }
    }
  }
  std::vector<FunctionDiff> result;
  std::vector<double> chances, self_chances;
  const CountTrust trust = trust_of(first, second);
  for (auto& [key, both] : functions) {
    both.diff.counts = compare_counts(calls_of(both.runs[0]), calls_of(both.runs[1]), trust);
    for (int at = 0; at < 2; ++at) both.diff.runs[at] = sides[at].size();
    if (const auto chance = test(both, one_trace)) chances.push_back(*chance);
    self_chances.push_back(self_test(both, one_trace));
    both.runs[0] = both.runs[1] = {};
    result.push_back(std::move(both.diff));
  }
  judge(result, chances, self_chances, options);
  std::stable_sort(result.begin(), result.end(), [](const FunctionDiff& x, const FunctionDiff& y) {
    return std::pair(!x.differs(), -std::abs(x.self_more_ns())) < std::pair(!y.differs(), -std::abs(y.self_more_ns()));
  });
  return result;
}

}  // namespace karst::analysis
