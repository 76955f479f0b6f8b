// SPDX-License-Identifier: MIT
#include "export/usage.h"

#include <fmt/format.h>

#include <set>

namespace karst::exporting {

void each_usage(const reader::Trace& trace, const Options& options,
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
  for (const reader::UsageSeries& series : trace.usage().series) {
    if (!is_exported(series)) continue;
    const format::UnitOfUsage& unit = analysis::kind_of_usage(series).of_unit();
    const std::string words = *unit.words_shown == '\0' ? std::string() : fmt::format(" ({})", unit.words_shown);
    UsageCounter counter{series, owners.process(series), owners.name(series) + words, {}};
    for (const analysis::UsageSample& sample : analysis::usage_samples(series, trace.clock())) {
      if (const auto& range = options.filter.range;
          range && (sample.ticks < range->begin || sample.ticks >= range->end))
        continue;
      counter.samples.push_back({sample.ticks, sample.value * unit.factor_shown});
    }
    if (!use(counter)) return;
  }
}

}  // namespace karst::exporting
