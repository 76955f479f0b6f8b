// SPDX-License-Identifier: MIT
#include "analysis/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace karst::analysis {

using format::UsageOf;
using reader::UsagePoint;
using reader::UsageSeries;

const format::KindOfUsage& kind_of_usage(const UsageSeries& series) {
  return *format::usage_kind(static_cast<std::uint32_t>(series.kind));
}

std::vector<UsageSample> usage_samples(const UsageSeries& series, const Clock& clock) {
  const format::UnitOfUsage& unit = kind_of_usage(series).of_unit();
  std::vector<UsageSample> samples;
  samples.reserve(series.points.size());
  const auto& points = series.points;
  for (std::size_t at = 0; at < points.size(); ++at) {
    double value = static_cast<double>(points[at].value);
    if (unit.is_total) {
      if (at + 1 == points.size()) {
        value = 0;
      } else {
        const std::uint64_t ticks = points[at + 1].ticks - points[at].ticks;
        if (ticks == 0) continue;
        const auto grown =
            static_cast<std::uint64_t>(points[at + 1].value) - static_cast<std::uint64_t>(points[at].value);
        value = static_cast<double>(grown) / static_cast<double>(ticks) * static_cast<double>(clock.ticks_per_second);
      }
    }
    samples.push_back({points[at].ticks, value * unit.factor});
  }
  return samples;
}

void cut_samples(std::vector<UsageSample>& samples, std::uint64_t begin, std::uint64_t end) {
  const auto is_before = [](std::uint64_t ticks) {
    return [ticks](const UsageSample& sample) { return sample.ticks < ticks; };
  };
  samples.erase(std::partition_point(samples.begin(), samples.end(), is_before(end)), samples.end());
  auto first = std::partition_point(samples.begin(), samples.end(), is_before(begin));
  if (first != samples.begin() && (first == samples.end() || first->ticks != begin)) (--first)->ticks = begin;
  samples.erase(samples.begin(), first);
}

UsageSum usage_sum(const UsageSeries& series, const std::vector<UsageSample>& samples) {
  UsageSum sum;
  sum.readings = series.points.size();
  // A total's last sample is behind all that is known.
  const std::size_t known = samples.size() - (kind_of_usage(series).is_total() && samples.size() > 1 ? 1 : 0);
  double weighed = 0;
  double weight = 0;
  for (std::size_t at = 0; at < known; ++at) {
    const double value = samples[at].value;
    sum.least = at == 0 ? value : std::min(sum.least, value);
    sum.most = at == 0 ? value : std::max(sum.most, value);
    if (at + 1 == samples.size()) continue;
    const auto ticks = static_cast<double>(samples[at + 1].ticks - samples[at].ticks);
    weighed += value * ticks;
    weight += ticks;
  }
  sum.mean = weight > 0 ? weighed / weight : samples.empty() ? 0 : samples.front().value;
  return sum;
}

UsageOwners::UsageOwners(const reader::Trace& trace) : trace_(trace) {
  if (trace.usage().empty()) return;
  const auto& processes = trace.processes();
  for (std::uint32_t at = 0; at < processes.size(); ++at) {
    processes_[processes[at].pid].push_back(at);
    for (const reader::Thread& thread : processes[at].threads)
      if (!thread.fiber) threads_.try_emplace(std::uint64_t{at} << 32 | thread.tid, &thread);
  }
}

std::optional<std::uint32_t> UsageOwners::process(const UsageSeries& series) const {
  const auto found = series.pid != 0 ? processes_.find(series.pid) : processes_.end();
  if (found == processes_.end()) return std::nullopt;
  constexpr std::size_t kMostLookedAt = 1000;  // a file may say that all processes have one number
  for (const std::uint32_t at : std::span(found->second).first(std::min(found->second.size(), kMostLookedAt))) {
    const std::uint64_t end = trace_.processes()[at].end_ticks;
    if (end == 0 || end >= series.points.front().ticks) return at;
  }
  return found->second.back();
}

const reader::Thread* UsageOwners::thread(const UsageSeries& series) const {
  const auto of = series.tid != 0 ? process(series) : std::nullopt;
  const auto found = of ? threads_.find(std::uint64_t{*of} << 32 | series.tid) : threads_.end();
  return found == threads_.end() ? nullptr : found->second;
}

std::string UsageOwners::name(const UsageSeries& series) const {
  const char* words = kind_of_usage(series).words;
  switch (series.of) {
    case UsageOf::kMachine:
      return fmt::format("{} of the machine", words);
    case UsageOf::kGroup:
      return fmt::format("{} of the cgroup", words);
    case UsageOf::kProcess:
      return words;
    case UsageOf::kThread:
      break;
  }
  const reader::Thread* const of = thread(series);
  return fmt::format("{} of thread {}{}{}", words, series.tid, of != nullptr && !of->name.empty() ? " " : "",
                     of != nullptr ? of->name : std::string());
}

}  // namespace karst::analysis
