// SPDX-License-Identifier: MIT
#include "cli/commands/check_all.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace karst::cli {

bool Found::has_failed() const {
  return std::any_of(outcomes.begin(), outcomes.end(),
                     [](const answers::CheckOutcome& of) { return std::string_view(of.outcome) == "failed"; });
}

void Found::sort() {
  std::stable_sort(
      findings.begin(), findings.end(),
      [](const answers::CheckFinding& a, const answers::CheckFinding& b) { return a.total_ns > b.total_ns; });
}

/// Each detector has a database of its own: what one's SQL makes, or takes away, is nothing to the next one.
Status check_trace(const std::vector<sql::Detector>& detectors, const Inputs& input, Found& found) {
  const std::string name = input.front()->trace.name();
  for (const sql::Detector& detector : detectors) {
    const auto database = open_database(input, {});
    if (!database) return database.error();
    sql::Checked checked = sql::check(detector, **database, name);
    std::move(checked.findings.begin(), checked.findings.end(), std::back_inserter(found.findings));
    found.outcomes.push_back(std::move(checked.outcome));
  }
  return Unit{};
}

}  // namespace karst::cli
