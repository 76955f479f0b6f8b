// SPDX-License-Identifier: MIT
#include "analysis/diff_findings.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace karst::analysis {
namespace {

Finding of_count(const CallDiff& call) {
  Finding found;
  found.caller = call.caller;
  found.function = call.callee;
  for (int at = 0; at < 2; ++at) found.calls[at] = call.calls(at);
  found.more_ns = call.gained_ns();
  found.weight_ns = std::abs(found.more_ns);
  found.counts = call.counts;
  found.certain = is_certain(call.counts);
  return found;
}

/// A caller is slower, too, when what it calls is: its own code must have a tenth of that.
bool is_its_own(const FunctionDiff& f) {
  const double durations = (f.side[1].middle_ns - f.side[0].middle_ns) * f.calls(1);
  return f.slower_ns() * durations > 0 && std::abs(f.slower_ns()) >= 0.1 * std::abs(durations);
}

Finding of_time(const FunctionDiff& f) {
  Finding found;
  found.kind = Finding::Kind::kTime;
  found.function = f.name;
  for (int at = 0; at < 2; ++at) {
    found.calls[at] = f.calls(at);
    found.call_self_ns[at] = f.self_ns(at) / f.calls(at);
  }
  found.more_ns = f.slower_ns();
  found.weight_ns = std::abs(found.more_ns);
  const bool durations = f.changed && is_its_own(f);
  found.certain = durations || f.self_changed;
  found.chance = durations || !f.self_changed ? f.chance : f.self_chance;
  return found;
}

/// What all functions' durations changed by, as machines change their speed: the median of theirs. 1: they are too few.
double common_change(std::span<const FunctionDiff> functions) {
  constexpr std::size_t kLeast = 5;
  std::vector<double> changes;
  for (const FunctionDiff& f : functions)
    if (f.tested) changes.push_back(1 + f.change());
  if (changes.size() < kLeast) return 1;
  const auto middle = changes.begin() + static_cast<std::ptrdiff_t>(changes.size() / 2);
  std::nth_element(changes.begin(), middle, changes.end());
  return *middle;
}

/// What a time that may be chance is ranked by: the sum of a run has the machine's interruptions in it, which the
/// midmean has not. But what only few calls took is in the sum alone.
double weight_of(const FunctionDiff& f, double common) {
  constexpr double kOfSum = 0.1;
  const double sum = f.slower_ns();
  if (!f.tested) return kOfSum * std::abs(sum);
  const double middle = (f.side[1].middle_ns - common * f.side[0].middle_ns) * f.calls(1);
  return std::max(kOfSum * std::abs(sum), std::min(std::abs(sum), std::abs(middle)));
}

bool is_called_more(const FunctionDiff& f, double limit, const double (&all_ns)[2]) {
  if (!is_certain(f.counts)) return false;
  const auto total = [&](int at) { return static_cast<double>(f.side[at].total_ns) / static_cast<double>(f.runs[at]); };
  // What a call cost may be off by as much as it is. What one side has beyond that is a pause of tracing's, which was
  // measured: it does not repeat with the calls.
  const auto cost = [&](int at) {
    const auto calls = static_cast<double>(std::max<std::uint64_t>(f.side[at].calls, 1));
    return static_cast<double>(f.side[at].total_cost_ns) / calls;
  };
  const double of_call = f.side[0].calls == 0 ? cost(1) : std::min(cost(0), cost(1));
  const double more = total(1) - total(0) - of_call * std::max(f.calls(1) - f.calls(0), 0.0);
  if (f.side[0].calls == 0) return more > limit * all_ns[0] && all_ns[1] - all_ns[0] > more / 2;
  return f.calls(1) > (1 + limit) * f.calls(0) && more > limit * total(0);
}

}  // namespace

std::vector<Finding> findings(std::span<const FunctionDiff> functions, std::span<const CallDiff> calls) {
  std::vector<Finding> all;
  for (const CallDiff& call : calls) all.push_back(of_count(call));
  const double common = common_change(functions);
  for (const FunctionDiff& f : functions) {
    if (!f.in_both()) continue;
    all.push_back(of_time(f));
    if (!all.back().certain) all.back().weight_ns = weight_of(f, common);
  }
  const auto order = [](const Finding& f) { return std::pair(!f.certain, -f.weight_ns); };
  std::stable_sort(all.begin(), all.end(), [&](const Finding& a, const Finding& b) { return order(a) < order(b); });
  return all;
}

bool is_over(const FunctionDiff& f, double limit, const double (&all_ns)[2]) {
  if (f.changed && f.change() > limit) return true;
  if (f.self_changed && f.self_change() > limit) return true;
  return is_called_more(f, limit, all_ns);
}

}  // namespace karst::analysis
