// SPDX-License-Identifier: MIT
#include "cli/commands/usage.h"

#include <fmt/format.h>

#include <cmath>

namespace karst::cli {
namespace {

/// Three digits, more before the point where there are more.
std::string usage_number(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 100 || size == 0 ? 0 : size >= 10 ? 1 : 2);
}

}  // namespace

UsageWords::UsageWords(const reader::Trace& trace) : trace_(trace), processes_(trace.processes().size()) {
  const analysis::UsageOwners owners(trace);
  for (const reader::UsageSeries& series : trace.usage().series) {
    if (series.of == format::UsageOf::kMachine) machine_.push_back(&series);
    if (series.of == format::UsageOf::kGroup) group_.push_back(&series);
    const auto process = series.of == format::UsageOf::kProcess ? owners.process(series) : std::nullopt;
    if (process) processes_[*process].push_back(&series);
  }
}

std::string UsageWords::of(format::UsageOf whom) const {
  return words(whom == format::UsageOf::kMachine ? machine_ : group_);
}

std::string UsageWords::of_process(std::uint32_t process) const { return words(processes_[process]); }

std::string UsageWords::words(const std::vector<const reader::UsageSeries*>& all) const {
  std::string text;
  for (const reader::UsageSeries* const series : all) {
    const analysis::UsageSum sum = analysis::usage_sum(*series, analysis::usage_samples(*series, trace_.clock()));
    if (sum.most <= 0) continue;
    const format::KindOfUsage& kind = analysis::kind_of_usage(*series);
    const format::UnitOfUsage& unit = kind.of_unit();
    const std::string mean = usage_number(sum.mean * unit.factor_shown);
    const std::string most = usage_number(sum.most * unit.factor_shown);
    const std::string_view shown = unit.words_shown;
    text += fmt::format("{}{} {}{}{}", text.empty() ? "" : ", ", kind.words, mean,
                        shown.empty() || shown.starts_with('%') ? "" : " ", shown);
    if (most != mean) text += fmt::format(" (at most {})", most);
  }
  return text;
}

}  // namespace karst::cli
