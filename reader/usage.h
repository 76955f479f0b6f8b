// SPDX-License-Identifier: MIT
// What the traced processes, their threads and the machine used while calls were recorded: CPU time, memory, bytes
// read and the like, read every 10 to 100 ms (kernel/usage_recorder.h).
#pragma once
#include <cstdint>
#include <vector>

#include "format/trace.h"
#include "format/usage_kinds.h"

namespace karst::reader {

struct UsagePoint {
  std::uint64_t ticks = 0;
  std::int64_t value = 0;  ///< in the kind's unit; never negative where it is a total
};

struct UsageSeries {
  format::UsageKind kind{};
  format::UsageOf of{};
  std::uint32_t pid = 0;           ///< 0: of the machine, or of the program's cgroup
  std::uint32_t tid = 0;           ///< 0: of no thread
  bool thinned = false;            ///< format::kSeriesThinned
  std::vector<UsagePoint> points;  ///< in order of time; totals do not fall
};

struct UsageLog {
  std::vector<UsageSeries> series;
  bool empty() const { return series.empty(); }
};

/// What was read from `begin` on and before `end`, with the last point before and the first behind, so that what lies
/// between is known.
UsageLog excerpt_usage(const UsageLog& log, std::uint64_t begin, std::uint64_t end);

}  // namespace karst::reader
