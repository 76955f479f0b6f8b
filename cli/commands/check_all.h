// SPDX-License-Identifier: MIT
// Asks all detectors about a trace: for `karst check`, and for the page.
#pragma once
#include <vector>

#include "answers/check.h"
#include "cli/input/database.h"
#include "sql/detector.h"

namespace karst::cli {

/// What was found in all traces.
struct Found {
  std::vector<answers::CheckFinding> findings;
  std::vector<answers::CheckOutcome> outcomes;

  bool has_failed() const;
  /// What takes most time comes first.
  void sort();
};

/// Adds what `detectors` find in the one trace of `input`. Error: DuckDB is not there.
Status check_trace(const std::vector<sql::Detector>& detectors, const Inputs& input, Found& found);

}  // namespace karst::cli
