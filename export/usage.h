// SPDX-License-Identifier: MIT
// What an export has of what was used beside the calls: counters, in the units that people see.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/usage.h"
#include "export/export.h"

namespace karst::exporting {

struct UsageCounter {
  const reader::UsageSeries& series;
  std::optional<std::uint32_t> process;  ///< its place in the trace; none: of the machine, or of the cgroup
  std::string name;                      ///< "memory (MiB)"
  std::vector<analysis::UsageSample> samples;
};

/// Those of processes and threads that are exported, from `origin` (ticks) on and in the range that is; and those of
/// the machine where Options::others. `use` returns false to stop.
void each_usage(const reader::Trace& trace, const Options& options, std::uint64_t origin,
                const std::function<bool(const UsageCounter&)>& use);

}  // namespace karst::exporting
