// SPDX-License-Identifier: MIT
#include "export/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace karst::exporting {

void each_usage(const reader::Trace& trace, const Options& options, std::uint64_t origin,
                const std::function<bool(const UsageCounter&)>& use) {
  if (trace.usage().empty()) return;
  const analysis::UsageOwners owners(trace);
  std::set<std::uint32_t> processes;
  std::set<const reader::Thread*> threads;
  for (const reader::Thread* const thread : options.threads) {
    processes.insert(thread->process);
    threads.insert(thread);
  }
  const auto is_exported = [&](const reader::UsageSeries& series) {
    if (series.pid == 0) return options.others;
    const auto process = owners.process(series);
    if (!process || !processes.contains(*process)) return false;
    return series.tid == 0 || threads.contains(owners.thread(series));
  };
  const auto& range = options.filter.range;
  const std::uint64_t begin = range ? std::max(range->begin, origin) : origin;
  const std::uint64_t end = range ? range->end : ~std::uint64_t{0};
  for (const reader::UsageSeries& series : trace.usage().series) {
    if (!is_exported(series)) continue;
    const format::UnitOfUsage& unit = analysis::kind_of_usage(series).of_unit();
    const std::string words = *unit.words_shown == '\0' ? std::string() : fmt::format(" ({})", unit.words_shown);
    UsageCounter counter{series, owners.process(series), owners.name(series) + words,
                         analysis::usage_samples(series, trace.clock())};
    analysis::cut_samples(counter.samples, begin, end);
    for (analysis::UsageSample& sample : counter.samples) sample.value *= unit.factor_shown;
    if (!use(counter)) return;
  }
}

}  // namespace karst::exporting
