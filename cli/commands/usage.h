// SPDX-License-Identifier: MIT
// What was used beside the calls, as karst info says it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/usage.h"
#include "reader/trace.h"

namespace karst::cli {

/// Words about a trace's usage; made once for all processes.
class UsageWords {
 public:
  explicit UsageWords(const reader::Trace& trace);
  /// "cpu 98.2% of a CPU (at most 131), memory 12.1 MiB (at most 14.3)": what was used at all. Empty: nothing is known.
  std::string of(format::UsageOf whom) const;
  /// The same of one process, by its place in the trace.
  std::string of_process(std::uint32_t process) const;

 private:
  std::string words(const std::vector<const reader::UsageSeries*>& all) const;

  const reader::Trace& trace_;
  std::vector<const reader::UsageSeries*> machine_;
  std::vector<const reader::UsageSeries*> group_;
  std::vector<std::vector<const reader::UsageSeries*>> processes_;
};

}  // namespace karst::cli
