#include "analysis/diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace karst::analysis {
namespace {

struct Both {
  FunctionDiff diff;
  std::vector<std::uint64_t> durations[2];  // ns
};

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// Known by its place alone: in its module, or as the number that the traced process gave it.
bool is_nameless(const FunctionReport& f) {
  return f.name.starts_with(file_name(f.module) + "+0x") || f.name.starts_with("function#");
}

/// What tells a module's builds apart. None: it has no build id, or the function is of no module.
std::optional<std::string> build_of(const reader::Trace& trace, const std::string& path) {
  for (const reader::Process& process : trace.processes())
    for (const reader::Module& module : process.modules)
      if (!path.empty() && module.path == path && !module.build_id.empty()) return module.build_id;
  return {};
}

std::uint64_t median(const std::vector<std::uint64_t>& sorted) {
  return sorted.empty() ? 0 : sorted[(sorted.size() + 1) / 2 - 1];  // as query::percentiles
}

// Most durations of many are short, so those are counted, and only the rest is compared.
void sort_durations(std::vector<std::uint64_t>& values) {
  constexpr std::size_t kShort = std::size_t{1} << 16;
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

std::vector<FunctionDiff> compare(const Measured& first, const Measured& second, const DiffOptions& options) {
  std::map<std::pair<std::string, std::string>, Both> functions;
  const bool one_trace = first.trace.name() == second.trace.name();  // two parts of it
  for (int at = 0; at < 2; ++at) {
    const Measured& from = at == 0 ? first : second;
    for (const FunctionReport& f : from.report.functions) {
      std::string of = file_name(f.module);
      if (is_nameless(f) && !one_trace) {
        if (auto build = build_of(from.trace, f.module))
          of = std::move(*build);
        else
          of += at == 0 ? " in A" : " in B";
      }
      Both& both = functions[{f.name, std::move(of)}];
      if (both.diff.name.empty()) both.diff.name = f.name;
      if (both.diff.module.empty()) both.diff.module = f.module;
      DiffSide& side = both.diff.side[at];
      side.calls += f.calls;
      side.complete += f.calls - f.open_calls;
      side.total_ns += f.total_ns;
      side.self_ns += f.self_ns;
      std::vector<std::uint64_t> durations = from.builder.durations_of(f.number);
      for (std::uint64_t& duration : durations) duration = from.trace.clock().to_ns(duration);
      std::vector<std::uint64_t>& all = both.durations[at];
      if (all.empty())
        all = std::move(durations);
      else
        all.insert(all.end(), durations.begin(), durations.end());
    }
  }
  std::vector<FunctionDiff> result;
  std::vector<double> chances;
  for (auto& [key, both] : functions) {
    FunctionDiff& diff = both.diff;
    diff.tested = both.durations[0].size() >= kLeastTested && both.durations[1].size() >= kLeastTested;
    if (diff.tested) {
      chances.push_back(rank_test(both.durations[0], both.durations[1]));
    } else {
      for (auto& durations : both.durations) sort_durations(durations);
    }
    for (int at = 0; at < 2; ++at) {
      diff.side[at].p50_ns = median(both.durations[at]);
      both.durations[at] = {};
    }
    result.push_back(std::move(diff));
  }
  adjust_for_many(chances);
  auto chance = chances.begin();
  for (FunctionDiff& diff : result) {
    if (!diff.tested) continue;
    diff.chance = *chance++;
    diff.changed = diff.chance < options.false_share && std::abs(diff.change()) >= options.least_change;
  }
  const auto order = [](const FunctionDiff& diff) {
    const std::uint64_t a = diff.side[0].self_ns, b = diff.side[1].self_ns;
    return std::tuple(!diff.changed, diff.in_both(), ~(a > b ? a - b : b - a));
  };
  std::stable_sort(result.begin(), result.end(),
                   [&](const FunctionDiff& a, const FunctionDiff& b) { return order(a) < order(b); });
  return result;
}

}  // namespace karst::analysis
