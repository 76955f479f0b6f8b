#include "analysis/diff_findings.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace karst::analysis {
namespace {

Finding of_count(const CallDiff& call) {
  Finding found;
  found.caller = call.caller;
  found.function = call.callee;
  for (int at = 0; at < 2; ++at) found.calls[at] = call.calls(at);
  found.more_ns = call.gained_ns();
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
  const bool durations = f.changed && is_its_own(f);
  found.certain = durations || f.self_changed;
  found.chance = durations || !f.self_changed ? f.chance : f.self_chance;
  return found;
}

bool is_called_more(const FunctionDiff& f, double limit, const double (&all_ns)[2]) {
  if (!is_certain(f.counts)) return false;
  const auto total = [&](int at) { return static_cast<double>(f.side[at].total_ns) / static_cast<double>(f.runs[at]); };
  const auto cost = [&](int at) {
    return static_cast<double>(f.side[at].total_cost_ns) / static_cast<double>(f.runs[at]);
  };
  const double more = total(1) - total(0) - std::max(cost(1) - cost(0), 0.0);  // what the estimate may be off by
  if (f.side[0].calls == 0) return more > limit * all_ns[0] && all_ns[1] - all_ns[0] > more / 2;
  return f.calls(1) > (1 + limit) * f.calls(0) && more > limit * total(0);
}

}  // namespace

std::vector<Finding> findings(std::span<const FunctionDiff> functions, std::span<const CallDiff> calls) {
  std::vector<Finding> all;
  for (const CallDiff& call : calls) all.push_back(of_count(call));
  for (const FunctionDiff& f : functions)
    if (f.in_both()) all.push_back(of_time(f));
  const auto order = [](const Finding& f) { return std::tuple(!f.certain, -std::abs(f.more_ns)); };
  std::stable_sort(all.begin(), all.end(), [&](const Finding& a, const Finding& b) { return order(a) < order(b); });
  return all;
}

bool is_over(const FunctionDiff& f, double limit, const double (&all_ns)[2]) {
  if (f.changed && f.change() > limit) return true;
  if (f.self_changed && f.self_change() > limit) return true;
  return is_called_more(f, limit, all_ns);
}

}  // namespace karst::analysis
