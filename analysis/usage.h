// SPDX-License-Identifier: MIT
// What was used beside the calls (reader/usage.h), as people and programs see it: levels as they were read, and of
// totals how fast they grew from one reading to the next.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reader/trace.h"

namespace karst::analysis {

struct UsageSample {
  std::uint64_t ticks = 0;
  double value = 0;  ///< from then on, until the next one
};

/// In the unit for programs (format::UnitOfUsage::words). Behind the last reading of a total nothing is known: its rate
/// is 0 from there on.
std::vector<UsageSample> usage_samples(const reader::UsageSeries& series, const Clock& clock);

/// Those in [begin, end). What holds at `begin` already stands first, as if it had been read then.
void cut_samples(std::vector<UsageSample>& samples, std::uint64_t begin, std::uint64_t end);

/// A series in short.
struct UsageSum {
  std::uint64_t readings = 0;
  double mean = 0;  ///< over time
  double least = 0;
  double most = 0;
};
/// `samples`: what usage_samples() has made of the series.
UsageSum usage_sum(const reader::UsageSeries& series, const std::vector<UsageSample>& samples);

/// Whose a trace's series are. The trace must outlive it.
class UsageOwners {
 public:
  explicit UsageOwners(const reader::Trace& trace);
  /// By its place in the trace: of several of its number the first that had not ended when the series began. Nothing:
  /// it is of the machine, or of a process that the trace does not have.
  std::optional<std::uint32_t> process(const reader::UsageSeries& series) const;
  /// Null: it is of no thread, or of one that made no traced call.
  const reader::Thread* thread(const reader::UsageSeries& series) const;
  /// "cpu", "cpu of the machine", "cpu of thread 4711 worker": of a process without its name.
  std::string name(const reader::UsageSeries& series) const;

 private:
  const reader::Trace& trace_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> processes_;  // by pid
  std::unordered_map<std::uint64_t, const reader::Thread*> threads_;         // by process and tid
};

const format::KindOfUsage& kind_of_usage(const reader::UsageSeries& series);

}  // namespace karst::analysis
